// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

/// Verifies a basis attestation on an EVM chain: its signer, that it is live, and that it has not expired.
contract BasisVerifier {
    struct BasisAttestation {
        string symbol;
        string chain;
        string asset;
        uint64 asOf;
        uint64 validUntil;
        uint64 seq;
        uint256 wrapperPriceE6;
        uint256 referencePriceE6;
        int256 basisBpsE2;
        string underlyingState;
        uint256 ratioE9;
        bool live;
        bytes32 contentSha256;
    }

    bytes32 private constant TYPE_HASH = keccak256(
        "BasisAttestation(string symbol,string chain,string asset,uint64 asOf,uint64 validUntil,uint64 seq,uint256 wrapperPriceE6,uint256 referencePriceE6,int256 basisBpsE2,string underlyingState,uint256 ratioE9,bool live,bytes32 contentSha256)"
    );
    bytes32 private constant DOMAIN = keccak256(
        abi.encode(keccak256("EIP712Domain(string name,string version)"), keccak256("Countersign Basis"), keccak256("1"))
    );
    /// Half of the curve's order: of the two valid signatures for one key and message only the lower is accepted.
    uint256 private constant HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0;

    address public immutable signer;

    constructor(address signer_) {
        signer = signer_;
    }

    function accepts(BasisAttestation calldata a, bytes calldata signature) external view returns (bool) {
        return a.live && block.timestamp <= a.validUntil && recover(a, signature) == signer;
    }

    function recover(BasisAttestation calldata a, bytes calldata signature) public pure returns (address) {
        if (signature.length != 65) return address(0);
        bytes32 r = bytes32(signature[0:32]);
        bytes32 s = bytes32(signature[32:64]);
        if (uint256(s) > HALF_ORDER) return address(0);
        return ecrecover(keccak256(abi.encodePacked("\x19\x01", DOMAIN, hashOf(a))), uint8(signature[64]), r, s);
    }

    function hashOf(BasisAttestation calldata a) private pure returns (bytes32) {
        bytes memory head = abi.encode(
            TYPE_HASH,
            keccak256(bytes(a.symbol)),
            keccak256(bytes(a.chain)),
            keccak256(bytes(a.asset)),
            a.asOf,
            a.validUntil,
            a.seq
        );
        bytes memory tail = abi.encode(
            a.wrapperPriceE6,
            a.referencePriceE6,
            a.basisBpsE2,
            keccak256(bytes(a.underlyingState)),
            a.ratioE9,
            a.live,
            a.contentSha256
        );
        return keccak256(bytes.concat(head, tail));
    }
}
