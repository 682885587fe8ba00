package org.apache.spark.sql.falcon

import java.io.FileWriter
import java.util.concurrent.{ConcurrentHashMap, CountDownLatch}
import org.apache.spark.SparkConf
import org.apache.spark.scheduler._
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd

/** Collects what the queries of each instance read and wrote. */
class CaptureListener(conf: SparkConf) extends SparkListener {
  private val file = conf.getOption(Capture.File)
  private val program = conf.getOption(Capture.Instance)
  private val instances = new ConcurrentHashMap[Long, String]()

  override def onJobStart(job: SparkListenerJobStart): Unit = for (properties <- Option(job.properties)) {
    val instance = Option(properties.getProperty(Capture.Instance)).orElse(program)
    val execution = properties.getProperty("spark.sql.execution.id")
    if (execution != null) instance.foreach(instances.put(execution.toLong, _))
    else if (!isInference(job)) Capture.forEach(instance)(_.addJob(leaves(job), writesFiles(job)))
  }

  /** Of the RDDs that were made from no others, what they read. */
  private def leaves(job: SparkListenerJobStart): Seq[Leaf] =
    Rdds.leaves(job.stageInfos.flatMap(_.rddInfos).map(one => (one.id, one.name, one.parentIds)))

  private def writesFiles(job: SparkListenerJobStart): Boolean =
    job.stageInfos.exists(_.name.contains("SparkHadoopWriter"))

  /** Whether Spark looks for the schema of files, which is no use of them yet: its stages are named after the reader. */
  private def isInference(job: SparkListenerJobStart): Boolean =
    job.stageInfos.forall(stage => CaptureListener.Readers.contains(stage.name.takeWhile(_ != ' ')))

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case end: SparkListenerSQLExecutionEnd =>
      val known = Option(instances.remove(end.executionId))
      // What Spark does for a query of the user's (a cache, a broadcast) has no plan of its own.
      if (end.qe != null) {
        val own = end.qe.sparkSession.conf.getOption(Capture.Instance)
        Capture.forEach(known.orElse(own).orElse(program)) { found =>
          try found.add(Query.of(end.qe, end.errorMessage.exists(_.nonEmpty), found.hasCollected))
          catch { case error: Throwable => found.fail(error) }
        }
      }
    case barrier: CaptureBarrier => barrier.arrived.countDown()
    case _ =>
  }

  override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit =
    for (name <- file; instance <- program) {
      val writer = new FileWriter(name)
      try writer.write(Capture.json(instance, isComplete = true)) finally writer.close()
    }
}

object CaptureListener {
  private val Readers = Set("csv", "json", "load", "orc", "parquet", "sql", "table", "text", "xml")
}

/** Has been handled when everything before it has. It is in no event log. */
case class CaptureBarrier(arrived: CountDownLatch) extends SparkListenerEvent {
  override protected[spark] def logEvent: Boolean = false
}
