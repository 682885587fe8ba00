package org.apache.spark.sql.falcon

import java.nio.file.Files
import org.apache.hadoop.fs.{LocalFileSystem, Path, RawLocalFileSystem}
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.spark.SparkContext

/** Files of this machine, whose permissions are set by a call: Hadoop starts the program chmod for each, and three
  * times for each file that it writes.
  */
class LocalFiles extends LocalFileSystem(new RawLocalFileSystem {
  override def setPermission(path: Path, permission: FsPermission): Unit = {
    val file = pathToFile(path).toPath
    // As chmod does, which keeps the bits of folders that it was not asked for.
    val kept =
      if (Files.isDirectory(file)) Files.getAttribute(file, LocalFiles.Mode).asInstanceOf[Int] & LocalFiles.SetIds
      else 0
    Files.setAttribute(file, LocalFiles.Mode, kept | permission.toShort.toInt)
  }
})

object LocalFiles {
  private val Mode = "unix:mode"
  private val SetIds = Integer.parseInt("6000", 8)
  private val Key = "fs.file.impl"

  /** Where all tasks run in this JVM, and nobody has chosen another file system. */
  def install(context: SparkContext): Unit =
    if (context.isLocal && context.hadoopConfiguration.get(Key) == null) {
      context.hadoopConfiguration.set(Key, classOf[LocalFiles].getName)
      context.hadoopConfiguration.set(s"$Key.disable.cache", "true") // else it stays as it was before the session
    }
}
