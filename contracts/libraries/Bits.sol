// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @dev A set of small numbers in memory: number n is bit n % width of word n / width.
struct NumberSet {
    uint256 width; // bits a word holds
    uint256[] words;
}

/// @title Sets of small numbers as words of bits
library Bits {
    /// @dev The number of set bits of a word; each step adds neighbouring counters of 2, 4, 8 … bits.
    function count(uint256 word) internal pure returns (uint256) {
        unchecked {
            word -= (word >> 1) & (type(uint256).max / 3);
            word = (word & (type(uint256).max / 5)) + ((word >> 2) & (type(uint256).max / 5));
            word = (word + (word >> 4)) & (type(uint256).max / 17);
            word = (word & (type(uint256).max / 257)) + ((word >> 8) & (type(uint256).max / 257));
            return (word * (type(uint256).max / 65535)) >> 240; // sixteen 16-bit counters added up in the topmost
        }
    }

    /// @dev The smallest number of a non-empty word: the count of bits below its lowest set bit.
    function lowest(uint256 word) internal pure returns (uint256) {
        unchecked {
            return count(~word & (word - 1));
        }
    }

    /// @dev An empty set with room for the numbers up to `highest`.
    function empty(uint256 width, uint256 highest) internal pure returns (NumberSet memory set) {
        set.width = width;
        set.words = new uint256[](highest / width + 1);
    }

    function put(NumberSet memory set, uint256 number) internal pure {
        set.words[number / set.width] |= 1 << (number % set.width);
    }

    /// @dev Whether a number, for which the set has room, is in it.
    function has(NumberSet memory set, uint256 number) internal pure returns (bool) {
        return (set.words[number / set.width] >> (number % set.width)) & 1 != 0;
    }

    /// @dev How many numbers a set has.
    function size(NumberSet memory set) internal pure returns (uint256 total) {
        for (uint256 i = 0; i < set.words.length; i++) total += count(set.words[i]);
    }

    /// @dev `length` numbers of a set in ascending order, after the first `offset`; the set must have as many.
    function page(NumberSet memory set, uint256 offset, uint256 length) internal pure returns (uint256[] memory found) {
        found = new uint256[](length);
        uint256 next = 0;
        for (uint256 i = 0; next < length; i++) {
            uint256 word = set.words[i];
            uint256 inWord = count(word);
            if (offset >= inWord) {
                offset -= inWord;
                continue;
            }
            unchecked {
                for (; word != 0 && next < length; word &= word - 1) {
                    if (offset == 0) found[next++] = i * set.width + lowest(word);
                    else offset--;
                }
            }
        }
    }
}
