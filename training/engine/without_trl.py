"""Keeps verl from patching TRL.

Where TRL is installed, verl 0.9.1 patches a value head that TRL 1.16 no longer has, so every run
would end while its model is built. No critic of this project is TRL's. Every process that imports
verl imports this first of its `VERL_USE_EXTERNAL_MODULES` (`verl.toml`), because the others import
modules of verl that ask whether TRL is installed.
"""

from verl.utils import import_utils

import_utils.is_trl_available = lambda: False
