"""The objects of S3, whose fsspec driver asks more often than it has to, or hides refusals."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from falcon_assets.storage.files.object_files import ObjectFiles

_REMOVED_AT_ONCE = 1000
"""S3's limit for one request."""
_REQUESTS = 3
_COPIED_AT_ONCE = 5 << 30
"""The bytes that S3 copies by one request."""
_DENIED = ("AccessDenied", "AllAccessDisabled", "AccountProblem")


class S3Files(ObjectFiles):
    def is_mounted(self, root: str) -> bool:
        """True also if these credentials may not ask."""
        try:
            self.fs.call_s3("head_bucket", Bucket=self.fs.split_path(root)[0])
        except FileNotFoundError:
            return False
        except PermissionError:
            return True
        return True

    def remove(self, paths: Iterable[str]) -> None:
        # Of many objects S3 refuses single ones, and says that the request succeeded: its driver takes that for all.
        keys: dict[str, list[str]] = {}
        for path in paths:
            bucket, key, _ = self.fs.split_path(path)
            keys.setdefault(bucket, []).append(key)
        for bucket, every in keys.items():
            parts = [every[begin : begin + _REMOVED_AT_ONCE] for begin in range(0, len(every), _REMOVED_AT_ONCE)]
            with ThreadPoolExecutor(_REQUESTS) as pool:
                list(pool.map(partial(self._remove, bucket), parts))
        self.refresh()

    def remove_tree(self, path: str) -> None:
        self.refresh()
        found = self.fs.find(path)
        if not found:
            raise FileNotFoundError(errno.ENOENT, "there is nothing", path)
        self.remove(found)

    def copy(self, source: str, target: str, size: int) -> None:
        if size > _COPIED_AT_ONCE:
            super().copy(source, target, size)
            return
        (old_bucket, old, _), (bucket, key, _) = self.fs.split_path(source), self.fs.split_path(target)
        self.fs.call_s3("copy_object", Bucket=bucket, Key=key, CopySource={"Bucket": old_bucket, "Key": old})

    def _remove(self, bucket: str, keys: Sequence[str]) -> None:
        asked = {"Objects": [{"Key": key} for key in keys], "Quiet": True}
        answer = self.fs.call_s3("delete_objects", Bucket=bucket, Delete=asked)
        for refused in answer.get("Errors", ()):
            number = errno.EACCES if refused.get("Code") in _DENIED else errno.EIO
            said = f"{refused.get('Code')}: {refused.get('Message')}"
            raise OSError(number, said, f"{bucket}/{refused.get('Key')}")
