// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

interface IToken {
    function transfer(address to, uint256 value) external returns (bool);
}

interface IPool {
    function token0() external view returns (address);
    function token1() external view returns (address);
    function slot0() external view returns (uint160, int24, uint16, uint16, uint16, uint8, bool);
    function mint(address, int24, int24, uint128, bytes calldata) external returns (uint256, uint256);
    function swap(address, bool, int256, uint160, bytes calldata) external returns (int256, int256);
}

/// Provides liquidity to a pool and swaps against it, paying from its own balance.
contract PoolActor {
    function provide(IPool pool, int24 lower, int24 upper, uint128 liquidity) external {
        pool.mint(address(this), lower, upper, liquidity, "");
    }

    /// Swaps to each price in turn with unlimited input, and returns the amounts.
    function moveTo(IPool pool, uint160[] calldata prices) external returns (int256[] memory amounts0, int256[] memory amounts1) {
        amounts0 = new int256[](prices.length);
        amounts1 = new int256[](prices.length);
        for (uint256 i = 0; i < prices.length; i++) {
            (uint160 current,,,,,,) = pool.slot0();
            if (current == prices[i]) continue;
            (amounts0[i], amounts1[i]) = pool.swap(address(this), prices[i] < current, type(int256).max, prices[i], "");
        }
    }

    function uniswapV3MintCallback(uint256 amount0, uint256 amount1, bytes calldata) external {
        if (amount0 > 0) IToken(IPool(msg.sender).token0()).transfer(msg.sender, amount0);
        if (amount1 > 0) IToken(IPool(msg.sender).token1()).transfer(msg.sender, amount1);
    }

    function uniswapV3SwapCallback(int256 amount0, int256 amount1, bytes calldata) external {
        if (amount0 > 0) IToken(IPool(msg.sender).token0()).transfer(msg.sender, uint256(amount0));
        if (amount1 > 0) IToken(IPool(msg.sender).token1()).transfer(msg.sender, uint256(amount1));
    }
}
