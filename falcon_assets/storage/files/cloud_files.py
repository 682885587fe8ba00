"""The objects of Azure and of Google, where asking whether a container is there differs."""

from __future__ import annotations

from falcon_assets.storage.files.object_files import ObjectFiles

_DENIED = (401, 403)


class AzureFiles(ObjectFiles):
    """See :class:`FileAccess`."""

    def is_mounted(self, root: str) -> bool:
        """Whether its container is there. Where nobody may ask that, it is."""
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
    """See :class:`FileAccess`."""

    def is_mounted(self, root: str) -> bool:
        """Whether its bucket is there, as who may list it is told. Where nobody may ask that, it is."""
        try:
            self.fs.call("GET", "b/{}/o", self.fs.split_path(root)[0], maxResults=1, json_out=True)
        except FileNotFoundError:
            return False
        except Exception as error:
            if getattr(error, "code", None) in _DENIED or str(error).startswith("Forbidden"):
                return True
            raise
        return True
