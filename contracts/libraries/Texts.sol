// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccountErrors} from "../interfaces/IAccountErrors.sol";

/// @dev The lengths of a name (low 8 bits) and a description (16 bits), stored in a slot that is loaded with the record
///   anyway.
type TextLengths is uint24;

/// @dev The bytes of both strings, one after the other, with room for the longest of each.
struct Text {
    Word[36] words;
}

/// @dev One slot, written whole: an element of a plain `bytes32` array would be read first.
struct Word {
    bytes32 value;
}

/// @title A name and a description side by side
/// @notice Both strings share consecutive words, so short strings use only the slots that their bytes fill and none for
///   lengths. Words past the text may hold bytes of an earlier one; the lengths mark its end.
library Texts {
    uint256 internal constant MAX_NAME = 128;
    uint256 internal constant MAX_DESCRIPTION = 1024;

    function requireShort(string calldata name, string calldata description) internal pure {
        if (bytes(name).length > MAX_NAME) revert IAccountErrors.StringTooLong(bytes(name).length, MAX_NAME);
        if (bytes(description).length > MAX_DESCRIPTION) {
            revert IAccountErrors.StringTooLong(bytes(description).length, MAX_DESCRIPTION);
        }
    }

    /// @dev Writes the words that differ from the stored ones.
    /// @return lengths The lengths to keep.
    /// @return changed Whether anything differed.
    function set(
        Text storage stored,
        TextLengths before,
        string calldata name,
        string calldata description
    ) internal returns (TextLengths lengths, bool changed) {
        bytes32[] memory words;
        (lengths, words) = _packed(name, description);
        changed = TextLengths.unwrap(lengths) != TextLengths.unwrap(before);
        for (uint256 i = 0; i < words.length; i++) {
            Word storage slot = stored.words[i];
            if (slot.value == words[i]) continue;
            slot.value = words[i];
            changed = true;
        }
    }

    /// @dev Whether these are the stored strings.
    function equals(
        Text storage stored,
        TextLengths lengths,
        string calldata name,
        string calldata description
    ) internal view returns (bool) {
        (TextLengths wanted, bytes32[] memory words) = _packed(name, description);
        if (TextLengths.unwrap(lengths) != TextLengths.unwrap(wanted)) return false;
        for (uint256 i = 0; i < words.length; i++) if (stored.words[i].value != words[i]) return false;
        return true;
    }

    /// @dev Reads both strings.
    function get(
        Text storage stored,
        TextLengths lengths
    ) internal view returns (string memory name, string memory description) {
        uint256 nameLength = TextLengths.unwrap(lengths) & 0xff;
        uint256 descriptionLength = TextLengths.unwrap(lengths) >> 8;
        bytes memory text = new bytes(nameLength + descriptionLength);
        for (uint256 at = 0; at < text.length; at += 32) {
            bytes32 word = stored.words[at / 32].value;
            assembly ("memory-safe") {
                mstore(add(add(text, 32), at), word) // memory is allocated in whole words: this stays inside `text`
            }
        }
        name = _slice(text, 0, nameLength);
        description = _slice(text, nameLength, descriptionLength);
    }

    /// @dev The lengths of both strings, and their bytes as words; zeros pad the last one.
    function _packed(
        string calldata name,
        string calldata description
    ) private pure returns (TextLengths lengths, bytes32[] memory words) {
        requireShort(name, description);
        lengths = TextLengths.wrap(uint24(bytes(name).length | (bytes(description).length << 8)));
        bytes memory text = bytes.concat(bytes(name), bytes(description), bytes32(0));
        assembly ("memory-safe") {
            words := text
            mstore(words, sub(shr(5, add(mload(words), 31)), 1)) // counts words from here on, without the padding's
        }
    }

    function _slice(bytes memory text, uint256 from, uint256 length) private pure returns (string memory part) {
        part = new string(length);
        assembly ("memory-safe") {
            mcopy(add(part, 32), add(add(text, 32), from), length)
        }
    }
}
