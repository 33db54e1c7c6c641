// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

/// A price feed and a registry of shares per token, with the interface of the real ones.
contract TestFeed {
    uint8 public constant decimals = 8;
    uint80 private round;
    int256 private answer;
    uint256 private updatedAt;
    uint256 private multiplier = 1e18;
    bool private paused;

    function set(int256 answer_, uint256 updatedAt_) external {
        round += 1;
        answer = answer_;
        updatedAt = updatedAt_;
    }

    function setParams(uint256 multiplier_, bool paused_) external {
        multiplier = multiplier_;
        paused = paused_;
    }

    function latestRoundData() external view returns (uint80, int256, uint256, uint256, uint80) {
        return (round, answer, updatedAt, updatedAt, round);
    }

    function getOracleParams(address) external view returns (uint256, bool) {
        return (multiplier, paused);
    }
}
