// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

interface IContractWallet {
  function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4);
}

/// The development token: it answers as USDC on Base does (EIP-20, EIP-2612, EIP-3009, the same revert strings), and it
/// has no constructor, so that its code can be placed at Base's real USDC address on the embedded chain.
/// Storage is restored by DevUSDCLoader after a restart: a new variable needs its restore there.
contract DevUSDC {
  string public constant name = "USD Coin";
  string public constant symbol = "USDC";
  string public constant currency = "USD";
  string public constant version = "2";
  uint8 public constant decimals = 6;

  /// Nobody holds a key for this address: only the process that owns the embedded chain can act as it.
  address public constant MINTER = address(uint160(uint256(keccak256("countersign.development.minter"))));

  bytes32 public constant TRANSFER_WITH_AUTHORIZATION_TYPEHASH =
    keccak256(
      "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
  bytes32 public constant RECEIVE_WITH_AUTHORIZATION_TYPEHASH =
    keccak256(
      "ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
  bytes32 public constant CANCEL_AUTHORIZATION_TYPEHASH =
    keccak256("CancelAuthorization(address authorizer,bytes32 nonce)");
  bytes32 public constant PERMIT_TYPEHASH =
    keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");
  bytes32 private constant DOMAIN_TYPEHASH =
    keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
  bytes32 private constant NAME_HASH = keccak256("USD Coin");
  bytes32 private constant VERSION_HASH = keccak256("2");

  /// Half the order of secp256k1: the upper half of `s` is the same signature written a second way.
  uint256 private constant HIGHEST_S = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;

  mapping(address => uint256) public balanceOf;
  uint256 public totalSupply;
  mapping(address => mapping(bytes32 => bool)) public authorizationState;
  mapping(address => mapping(address => uint256)) public allowance;
  mapping(address => uint256) public nonces;

  event Transfer(address indexed from, address indexed to, uint256 value);
  event Approval(address indexed owner, address indexed spender, uint256 value);
  event Mint(address indexed minter, address indexed to, uint256 amount);
  event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);
  event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce);

  function DOMAIN_SEPARATOR() public view returns (bytes32) {
    return keccak256(abi.encode(DOMAIN_TYPEHASH, NAME_HASH, VERSION_HASH, block.chainid, address(this)));
  }

  function mint(address to, uint256 amount) external returns (bool) {
    require(msg.sender == MINTER, "FiatToken: caller is not a minter");
    require(to != address(0), "FiatToken: mint to the zero address");
    require(amount > 0, "FiatToken: mint amount not greater than 0");
    totalSupply += amount;
    balanceOf[to] += amount;
    emit Mint(msg.sender, to, amount);
    emit Transfer(address(0), to, amount);
    return true;
  }

  function transfer(address to, uint256 value) external returns (bool) {
    _transfer(msg.sender, to, value);
    return true;
  }

  /// Emits Approval for the allowance that is left, so that the logs alone tell every allowance.
  function transferFrom(address from, address to, uint256 value) external returns (bool) {
    uint256 allowed = allowance[from][msg.sender];
    require(value <= allowed, "ERC20: transfer amount exceeds allowance");
    _transfer(from, to, value);
    if (allowed != type(uint256).max) _approve(from, msg.sender, allowed - value);
    return true;
  }

  function approve(address spender, uint256 value) external returns (bool) {
    _approve(msg.sender, spender, value);
    return true;
  }

  function increaseAllowance(address spender, uint256 increment) external returns (bool) {
    _approve(msg.sender, spender, allowance[msg.sender][spender] + increment);
    return true;
  }

  function decreaseAllowance(address spender, uint256 decrement) external returns (bool) {
    uint256 allowed = allowance[msg.sender][spender];
    require(decrement <= allowed, "ERC20: decreased allowance below zero");
    _approve(msg.sender, spender, allowed - decrement);
    return true;
  }

  function permit(
    address owner,
    address spender,
    uint256 value,
    uint256 deadline,
    uint8 v,
    bytes32 r,
    bytes32 s
  ) external {
    _permit(owner, spender, value, deadline, abi.encodePacked(r, s, v));
  }

  function permit(address owner, address spender, uint256 value, uint256 deadline, bytes memory signature) external {
    _permit(owner, spender, value, deadline, signature);
  }

  function transferWithAuthorization(
    address from,
    address to,
    uint256 value,
    uint256 validAfter,
    uint256 validBefore,
    bytes32 nonce,
    uint8 v,
    bytes32 r,
    bytes32 s
  ) external {
    _transferWithAuthorization(from, to, value, validAfter, validBefore, nonce, abi.encodePacked(r, s, v));
  }

  function transferWithAuthorization(
    address from,
    address to,
    uint256 value,
    uint256 validAfter,
    uint256 validBefore,
    bytes32 nonce,
    bytes memory signature
  ) external {
    _transferWithAuthorization(from, to, value, validAfter, validBefore, nonce, signature);
  }

  function receiveWithAuthorization(
    address from,
    address to,
    uint256 value,
    uint256 validAfter,
    uint256 validBefore,
    bytes32 nonce,
    uint8 v,
    bytes32 r,
    bytes32 s
  ) external {
    _receiveWithAuthorization(from, to, value, validAfter, validBefore, nonce, abi.encodePacked(r, s, v));
  }

  function receiveWithAuthorization(
    address from,
    address to,
    uint256 value,
    uint256 validAfter,
    uint256 validBefore,
    bytes32 nonce,
    bytes memory signature
  ) external {
    _receiveWithAuthorization(from, to, value, validAfter, validBefore, nonce, signature);
  }

  function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s) external {
    _cancelAuthorization(authorizer, nonce, abi.encodePacked(r, s, v));
  }

  function cancelAuthorization(address authorizer, bytes32 nonce, bytes memory signature) external {
    _cancelAuthorization(authorizer, nonce, signature);
  }

  function _transferWithAuthorization(
    address from,
    address to,
    uint256 value,
    uint256 validAfter,
    uint256 validBefore,
    bytes32 nonce,
    bytes memory signature
  ) private {
    _requireAuthorization(
      TRANSFER_WITH_AUTHORIZATION_TYPEHASH, from, to, value, validAfter, validBefore, nonce, signature
    );
    _transfer(from, to, value);
  }

  function _receiveWithAuthorization(
    address from,
    address to,
    uint256 value,
    uint256 validAfter,
    uint256 validBefore,
    bytes32 nonce,
    bytes memory signature
  ) private {
    require(to == msg.sender, "FiatTokenV2: caller must be the payee");
    _requireAuthorization(
      RECEIVE_WITH_AUTHORIZATION_TYPEHASH, from, to, value, validAfter, validBefore, nonce, signature
    );
    _transfer(from, to, value);
  }

  function _requireAuthorization(
    bytes32 typehash,
    address from,
    address to,
    uint256 value,
    uint256 validAfter,
    uint256 validBefore,
    bytes32 nonce,
    bytes memory signature
  ) private {
    require(block.timestamp > validAfter, "FiatTokenV2: authorization is not yet valid");
    require(block.timestamp < validBefore, "FiatTokenV2: authorization is expired");
    require(!authorizationState[from][nonce], "FiatTokenV2: authorization is used or canceled");
    bytes32 digest = _digest(keccak256(abi.encode(typehash, from, to, value, validAfter, validBefore, nonce)));
    require(_isSignedBy(from, digest, signature), "FiatTokenV2: invalid signature");
    authorizationState[from][nonce] = true;
    emit AuthorizationUsed(from, nonce);
  }

  function _cancelAuthorization(address authorizer, bytes32 nonce, bytes memory signature) private {
    require(!authorizationState[authorizer][nonce], "FiatTokenV2: authorization is used or canceled");
    bytes32 digest = _digest(keccak256(abi.encode(CANCEL_AUTHORIZATION_TYPEHASH, authorizer, nonce)));
    require(_isSignedBy(authorizer, digest, signature), "FiatTokenV2: invalid signature");
    authorizationState[authorizer][nonce] = true;
    emit AuthorizationCanceled(authorizer, nonce);
  }

  function _permit(address owner, address spender, uint256 value, uint256 deadline, bytes memory signature) private {
    require(deadline == type(uint256).max || deadline >= block.timestamp, "FiatTokenV2: permit is expired");
    bytes32 digest = _digest(keccak256(abi.encode(PERMIT_TYPEHASH, owner, spender, value, nonces[owner]++, deadline)));
    require(_isSignedBy(owner, digest, signature), "EIP2612: invalid signature");
    _approve(owner, spender, value);
  }

  function _transfer(address from, address to, uint256 value) private {
    require(from != address(0), "ERC20: transfer from the zero address");
    require(to != address(0), "ERC20: transfer to the zero address");
    uint256 held = balanceOf[from];
    require(value <= held, "ERC20: transfer amount exceeds balance");
    unchecked {
      balanceOf[from] = held - value;
      balanceOf[to] += value;
    }
    emit Transfer(from, to, value);
  }

  function _approve(address owner, address spender, uint256 value) private {
    require(owner != address(0), "ERC20: approve from the zero address");
    require(spender != address(0), "ERC20: approve to the zero address");
    allowance[owner][spender] = value;
    emit Approval(owner, spender, value);
  }

  function _digest(bytes32 structHash) private view returns (bytes32) {
    return keccak256(abi.encodePacked("\x19\x01", DOMAIN_SEPARATOR(), structHash));
  }

  /// An account with code decides for itself (EIP-1271); every other one signs with its key.
  function _isSignedBy(address signer, bytes32 digest, bytes memory signature) private view returns (bool) {
    if (signer.code.length == 0) return _recover(digest, signature) == signer;
    (bool success, bytes memory answer) = signer.staticcall(
      abi.encodeCall(IContractWallet.isValidSignature, (digest, signature))
    );
    return
      success && answer.length >= 32 && abi.decode(answer, (bytes32)) == bytes32(IContractWallet.isValidSignature.selector);
  }

  function _recover(bytes32 digest, bytes memory signature) private pure returns (address signer) {
    require(signature.length == 65, "ECRecover: invalid signature length");
    bytes32 r;
    bytes32 s;
    uint8 v;
    assembly ("memory-safe") {
      r := mload(add(signature, 0x20))
      s := mload(add(signature, 0x40))
      v := byte(0, mload(add(signature, 0x60)))
    }
    require(uint256(s) <= HIGHEST_S, "ECRecover: invalid signature 's' value");
    require(v == 27 || v == 28, "ECRecover: invalid signature 'v' value");
    signer = ecrecover(digest, v, r, s);
    require(signer != address(0), "ECRecover: invalid signature");
  }
}
