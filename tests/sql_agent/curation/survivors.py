"""Numbers of persons that are still in a text, found without a look at the program's own patterns."""

import re
import unicodedata

from sql_agent.curation.personal_data import has_check_digit

CHINESE = dict(zip("〇零一二三四五六七八九幺", "001234567891", strict=True))


def digit_groups(text):
    """Return groups of digits and what stands between, without a look at the program's patterns."""
    plain = "".join(str(unicodedata.digit(char, CHINESE.get(char, char))) for char in text)
    return re.findall(r"[0-9]+|[^0-9]+", plain)


def survivors(text):
    """Return mobile numbers, ID numbers and long runs of digits, whole or in groups."""
    parts = digit_groups(text)
    found = [part for part in parts if part.isdigit() and len(part) >= 11]
    for start, part in enumerate(parts):
        joined = ""
        for piece in parts[start:] if part.isdigit() else ():
            if piece.isdigit():
                joined += piece
            elif piece not in (" ", "-", ".", ",", "·", "—", " - "):
                break
            if re.fullmatch(r"1[3-9][0-9]{9}", joined):
                found.append(joined)
            if (
                len(joined) == 18 and joined[0] != "0" and has_check_digit(joined)
            ):  # no region begins with 0
                found.append(joined)
    return found
