"""The user that a recording is given to."""

from __future__ import annotations

import sys

from ptkit.errors import ConfigError

__all__ = ["owner_ids"]

if sys.platform == "win32":

    def owner_ids(owner: str | int) -> tuple[int, int]:
        """Refuse the option ``owner``."""
        raise ConfigError("owner: a recording belongs to the user that records on Windows; leave owner out")

else:
    import os
    import pwd

    def owner_ids(owner: str | int) -> tuple[int, int]:
        """Return the user and the group that the option ``owner`` names, by name or number.

        Raises
        ------
        ConfigError
            If there is no such user, or this user may not give files away.
        """
        number = isinstance(owner, int) or owner.isdecimal()
        try:
            user = pwd.getpwuid(int(owner)) if number else pwd.getpwnam(str(owner))
        except (KeyError, OverflowError):
            raise ConfigError(f"owner: there is no user {owner!r}; `getent passwd` lists users") from None
        if os.geteuid() not in (0, user.pw_uid):
            raise ConfigError(f"owner: only root can give a file to {user.pw_name}; leave owner out")
        return user.pw_uid, user.pw_gid
