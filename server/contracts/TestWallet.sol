// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// For tests only: a contract wallet (EIP-1271) whose one owner signs for it. Its signature is a single byte, which says
/// what the wallet should do, and then the owner's 65 bytes.
contract TestWallet {
  address public immutable owner;

  constructor(address owner_) {
    owner = owner_;
  }

  function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4) {
    if (signature.length != 66) return 0xffffffff;
    // A wallet may burn whatever gas it is given.
    if (signature[0] == 0x02) while (true) {}
    bytes32 r = bytes32(signature[1:33]);
    bytes32 s = bytes32(signature[33:65]);
    address signer = ecrecover(digest, uint8(signature[65]), r, s);
    return signer == owner ? this.isValidSignature.selector : bytes4(0xffffffff);
  }
}
