// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {TestWallet} from "./TestWallet.sol";

/// For tests only: deploys a wallet at an address that is known before (EIP-6492).
contract TestWalletFactory {
  function deploy(address owner) external returns (address) {
    return address(new TestWallet{salt: 0}(owner));
  }

  function addressOf(address owner) external view returns (address) {
    bytes32 code = keccak256(abi.encodePacked(type(TestWallet).creationCode, abi.encode(owner)));
    return address(uint160(uint256(keccak256(abi.encodePacked(bytes1(0xff), address(this), bytes32(0), code)))));
  }
}
