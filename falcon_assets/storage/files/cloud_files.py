"""The objects of Azure and of Google, where asking whether a container is there differs."""

from __future__ import annotations

from falcon_assets.storage.files.object_files import ObjectFiles

_DENIED = (401, 403)


class AzureFiles(ObjectFiles):
    def is_mounted(self, root: str) -> bool:
        """True also if these credentials may not ask."""
        try:
            self.fs.info(self.fs.split_path(root)[0], refresh=True)
        except FileNotFoundError:
            return False
        except Exception as error:
            if getattr(error, "status_code", None) in _DENIED:
                return True
            raise
        return True


class GoogleFiles(ObjectFiles):
    def is_mounted(self, root: str) -> bool:
        """Lists the bucket, which readers may; true also if these credentials may not."""
        try:
            self.fs.call("GET", "b/{}/o", self.fs.split_path(root)[0], maxResults=1, json_out=True)
        except FileNotFoundError:
            return False
        except Exception as error:
            if getattr(error, "code", None) in _DENIED or str(error).startswith("Forbidden"):
                return True
            raise
        return True
