"""Numbers of persons that are still in a text, found without a look at the program's own patterns."""

import re
import unicodedata

from sql_agent.curation.personal_data import has_check_digit

CHINESE = dict(zip("〇零一二三四五六七八九幺", "001234567891", strict=True))
BETWEEN = r"(?: - |[ \-.,·—])?"  # one sign between groups of digits
LONG = re.compile(r"\d{11,}")
MOBILE = re.compile(rf"(?<!\d)1{BETWEEN}[3-9](?:{BETWEEN}\d){{9}}(?!\d)")
# One may begin where another does not end. No region begins with 0
EIGHTEEN = re.compile(rf"(?<!\d)(?=([1-9](?:{BETWEEN}\d){{17}})(?!\d))")


def survivors(text):
    """Return mobile numbers, ID numbers and long runs of digits, whole or in groups."""
    plain = "".join(str(unicodedata.digit(char, CHINESE.get(char, char))) for char in text)
    found = LONG.findall(plain) + MOBILE.findall(plain)
    for number in EIGHTEEN.findall(plain):
        if has_check_digit(re.sub(r"\D", "", number)):
            found.append(number)
    return found
