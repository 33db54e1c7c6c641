// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DevUSDC} from "./DevUSDC.sol";

/// Stands at the token's address for a moment while the embedded chain starts: it writes the journalled state back into
/// the token's storage, in batches, and is then replaced by DevUSDC. It shares the token's storage layout by inheritance.
contract DevUSDCLoader is DevUSDC {
  function restoreSupply(uint256 supply) external {
    totalSupply = supply;
  }

  function restoreBalances(address[] calldata owners, uint256[] calldata amounts) external {
    for (uint256 i = 0; i < owners.length; i++) balanceOf[owners[i]] = amounts[i];
  }

  function restoreAuthorizations(address[] calldata authorizers, bytes32[] calldata used) external {
    for (uint256 i = 0; i < authorizers.length; i++) authorizationState[authorizers[i]][used[i]] = true;
  }

  function restoreAllowances(
    address[] calldata owners,
    address[] calldata spenders,
    uint256[] calldata amounts
  ) external {
    for (uint256 i = 0; i < owners.length; i++) allowance[owners[i]][spenders[i]] = amounts[i];
  }

  function restorePermitNonces(address[] calldata owners, uint256[] calldata counts) external {
    for (uint256 i = 0; i < owners.length; i++) nonces[owners[i]] = counts[i];
  }
}
