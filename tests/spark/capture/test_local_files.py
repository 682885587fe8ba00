"""Files that a Spark in one process writes get their permissions without a program that is started for each."""

from __future__ import annotations

import os
import stat

import pytest

from tests.spark.sandbox import Sandbox

pytestmark = pytest.mark.soak


def test_what_is_written_has_the_permissions_that_hadoop_gives(sandbox: Sandbox) -> None:
    session = sandbox.session()
    jvm = session.sparkContext._jvm
    assert jvm is not None
    path = jvm.org.apache.hadoop.fs.Path(sandbox.folder.as_uri())
    configuration = session._jsparkSession.sessionState().newHadoopConf()
    files = path.getFileSystem(configuration)
    assert files.getClass().getName() == "org.apache.spark.sql.falcon.LocalFiles"
    folder = sandbox.folder / "written"
    session.range(3).write.parquet(folder.as_uri())
    umask = os.umask(0)
    os.umask(umask)
    modes = {one.is_dir(): stat.S_IMODE(one.stat().st_mode) for one in (folder, *folder.glob("*.parquet"))}
    assert modes == {True: 0o777 & ~umask, False: 0o666 & ~umask}
    shared = sandbox.folder / "shared"
    shared.mkdir()
    shared.chmod(0o2750)
    permission = jvm.org.apache.hadoop.fs.permission.FsPermission
    files.setPermission(jvm.org.apache.hadoop.fs.Path(shared.as_uri()), permission("755"))
    assert stat.S_IMODE(shared.stat().st_mode) == 0o2755  # as chmod does
    files.setPermission(jvm.org.apache.hadoop.fs.Path(shared.as_uri()), permission("1700"))
    assert stat.S_IMODE(shared.stat().st_mode) == 0o3700
    with pytest.raises(Exception, match="NoSuchFileException"):
        files.setPermission(jvm.org.apache.hadoop.fs.Path(f"{shared.as_uri()}/none"), permission("755"))
