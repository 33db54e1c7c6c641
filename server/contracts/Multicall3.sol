// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// Many calls in one, with the ABI that clients expect at Multicall3's well-known address. Our own code: only the calls
/// that this project and common clients make are here.
contract Multicall3 {
  struct Call {
    address target;
    bytes callData;
  }

  struct Call3 {
    address target;
    bool allowFailure;
    bytes callData;
  }

  struct Result {
    bool success;
    bytes returnData;
  }

  function aggregate3(Call3[] calldata calls) external payable returns (Result[] memory results) {
    uint256 count = calls.length;
    results = new Result[](count);
    for (uint256 i = 0; i < count; i++) {
      Call3 calldata item = calls[i];
      Result memory result = results[i];
      (result.success, result.returnData) = item.target.call(item.callData);
      require(result.success || item.allowFailure, "Multicall3: call failed");
    }
  }

  function tryAggregate(
    bool requireSuccess,
    Call[] calldata calls
  ) external payable returns (Result[] memory results) {
    uint256 count = calls.length;
    results = new Result[](count);
    for (uint256 i = 0; i < count; i++) {
      Result memory result = results[i];
      (result.success, result.returnData) = calls[i].target.call(calls[i].callData);
      require(result.success || !requireSuccess, "Multicall3: call failed");
    }
  }

  function getBlockNumber() external view returns (uint256) {
    return block.number;
  }

  function getBlockHash(uint256 blockNumber) external view returns (bytes32) {
    return blockhash(blockNumber);
  }

  function getLastBlockHash() external view returns (bytes32) {
    return blockhash(block.number - 1);
  }

  function getCurrentBlockTimestamp() external view returns (uint256) {
    return block.timestamp;
  }

  function getCurrentBlockGasLimit() external view returns (uint256) {
    return block.gaslimit;
  }

  function getCurrentBlockCoinbase() external view returns (address) {
    return block.coinbase;
  }

  function getBasefee() external view returns (uint256) {
    return block.basefee;
  }

  function getChainId() external view returns (uint256) {
    return block.chainid;
  }

  function getEthBalance(address account) external view returns (uint256) {
    return account.balance;
  }
}
