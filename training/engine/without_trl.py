"""Keep verl 0.9.1 from patching a value head that TRL 1.16 no longer has. Import this first."""

from verl.utils import import_utils

import_utils.is_trl_available = lambda: False
