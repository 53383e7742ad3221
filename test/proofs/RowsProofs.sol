// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Rows} from "../../contracts/libraries/Rows.sol";

/// @dev Statements for the compiler's model checker (scripts/proofs.ts), for all arguments. Never deployed.
contract RowsProofs {
    mapping(uint256 page => uint256) private row;

    function wordsBehindTheLastPageShareAMark(uint112 pages, uint256 word, uint256 other) external pure {
        require(word >= 111 && other >= 111);
        assert(Rows.mayFill(pages, word) == Rows.mayFill(pages, other));
    }

    function addingKeepsMarks(uint112 pages, uint256 index, uint256 word) external {
        bool marked = Rows.mayFill(pages, word);
        uint112 kept = Rows.add(row, pages, index);
        assert(!marked || Rows.mayFill(kept, word));
    }
}
