// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Bits, NumberSet} from "./Bits.sol";

uint256 constant INDEXES_PER_WORD = 256;

/// @title The members of one group, for lists
/// @notice A row is a set of item indexes in words of 256. `pages` marks words that may be non-zero, so that lists skip
///   the others: bit p for word p, the last bit for all words from there on (indexes from 28,416). It shares a slot
///   with the group's other data.
library Rows {
    uint256 private constant LAST_PAGE = 111;

    /// @dev Adds an index. Returns the pages to keep.
    function add(
        mapping(uint256 page => uint256) storage row,
        uint112 pages,
        uint256 index
    ) internal returns (uint112) {
        row[index / INDEXES_PER_WORD] |= 1 << (index % INDEXES_PER_WORD);
        return pages | uint112(1 << _page(index / INDEXES_PER_WORD));
    }

    function remove(mapping(uint256 page => uint256) storage row, uint256 index) internal {
        row[index / INDEXES_PER_WORD] &= ~(1 << (index % INDEXES_PER_WORD));
    }

    /// @dev The row in memory, for indexes up to `lastIndex`.
    function load(
        mapping(uint256 page => uint256) storage row,
        uint112 pages,
        uint256 lastIndex
    ) internal view returns (NumberSet memory set) {
        set = Bits.empty(INDEXES_PER_WORD, lastIndex);
        for (uint256 i = 0; i < set.words.length; i++) {
            if (mayFill(pages, i)) set.words[i] = row[i];
        }
    }

    /// @dev Whether a word of a row may be non-zero.
    function mayFill(uint112 pages, uint256 word) internal pure returns (bool) {
        return (pages >> _page(word)) & 1 != 0;
    }

    function _page(uint256 word) private pure returns (uint256) {
        return word < LAST_PAGE ? word : LAST_PAGE;
    }
}
