package org.apache.spark.sql.falcon

import java.io.FileWriter
import java.util.concurrent.{ConcurrentHashMap, CountDownLatch, TimeUnit}
import scala.collection.mutable
import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.module.scala.DefaultScalaModule
import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.scheduler._
import org.apache.spark.sql.execution.ui.{SparkListenerSQLExecutionEnd, SparkListenerSQLExecutionStart}

/** Collects what the queries of each instance read and wrote. */
class CaptureListener(conf: SparkConf) extends SparkListener {
  private val file = conf.getOption(Capture.File)
  private val program = conf.getOption(Capture.Instance)
  private val instances = new ConcurrentHashMap[Long, String]()

  override def onJobStart(job: SparkListenerJobStart): Unit =
    for (properties <- Option(job.properties); instance <- Option(properties.getProperty(Capture.Instance)).orElse(program)) {
      val execution = properties.getProperty("spark.sql.execution.id")
      if (execution != null) instances.put(execution.toLong, instance)
      else if (!isInference(job))
        Capture.add(instance)(_.addJob(job.stageInfos.flatMap(_.rddInfos).map(_.name).filter(_.contains("/")).toSet))
    }

  /** Whether Spark looks for the schema of files, which is no use of them yet: its stages are named after the reader. */
  private def isInference(job: SparkListenerJobStart): Boolean =
    job.stageInfos.forall(stage => CaptureListener.Readers.contains(stage.name.takeWhile(_ != ' ')))

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case end: SparkListenerSQLExecutionEnd =>
      val known = Option(instances.remove(end.executionId))
      // What Spark does for a query of the user's (a cache, a broadcast) has no plan of its own.
      if (end.qe != null) {
        val own = end.qe.sparkSession.conf.getOption(Capture.Instance)
        for (instance <- known.orElse(own).orElse(program))
          Capture.add(instance) { found =>
            try found.add(Query.of(end.qe, end.errorMessage.exists(_.nonEmpty)))
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

/** What is known of one instance. */
class Captured(val droppedBefore: Long) {
  private val reads = mutable.LinkedHashSet[Map[String, Any]]()
  private val writes = mutable.LinkedHashSet[Map[String, Any]]()
  private var jobs = 0
  private var problem: Option[String] = None

  def add(query: Query): Unit = synchronized {
    query.reads.foreach(one => put(reads, one))
    query.writes.foreach(one => put(writes, one))
  }
  def addJob(paths: Set[String]): Unit = synchronized {
    jobs += 1
    if (paths.nonEmpty) put(reads, Map("roots" -> paths.toSeq.sorted, "paths" -> Nil, "isComplete" -> false))
  }
  def fail(error: Throwable): Unit = synchronized { problem = Some(error.toString.take(500)) }
  def asMap: Map[String, Any] = synchronized {
    Map("reads" -> reads.toSeq, "writes" -> writes.toSeq, "jobs" -> jobs, "problem" -> problem)
  }
  private def put(where: mutable.LinkedHashSet[Map[String, Any]], one: Map[String, Any]): Unit =
    if (where.size < Capture.MostOfInstance) where += one
    else problem = Some(s"more than ${Capture.MostOfInstance} different reads or writes")
}

/** What the listener of this JVM has collected, by instance. */
object Capture {
  private var listened: Option[SparkContext] = None

  /** Listens to a context from now on; once. */
  def install(context: SparkContext): Unit = synchronized {
    if (!listened.exists(_ eq context)) {
      context.addSparkListener(new CaptureListener(context.conf))
      listened = Some(context)
    }
  }

  val Instance = "spark.sql.falcon.instance"
  val File = "spark.falcon.capture.file"
  val MostInstances = 1000
  val MostOfInstance = 5000
  private val mapper = new ObjectMapper().registerModule(DefaultScalaModule)
  private val found = new mutable.LinkedHashMap[String, Captured]()
  private var dropped = 0L

  def add(instance: String)(what: Captured => Unit): Unit = {
    val captured = synchronized {
      val one = found.getOrElseUpdate(instance, new Captured(dropped))
      while (found.size > MostInstances) found.remove(found.head._1)
      dropped = droppedEvents
      one
    }
    what(captured)
  }

  /** All that was captured of an instance once what happened before this call is handled, as JSON. */
  def of(instance: String, milliseconds: Long): String = {
    val barrier = CaptureBarrier(new CountDownLatch(1))
    val arrived = SparkContext.getActive.exists { context =>
      context.listenerBus.post(barrier)
      barrier.arrived.await(milliseconds, TimeUnit.MILLISECONDS)
    }
    json(instance, arrived)
  }

  def forget(instance: String): Unit = synchronized { found.remove(instance) }

  private[falcon] def json(instance: String, isComplete: Boolean): String = synchronized {
    val one = found.get(instance)
    val lost = one.exists(captured => droppedEvents > captured.droppedBefore)
    mapper.writeValueAsString(
      one.map(_.asMap).getOrElse(Map[String, Any]()) + ("isComplete" -> (isComplete && !lost)))
  }

  /** How many events Spark has thrown away because listeners were slower than it. */
  private def droppedEvents: Long = SparkContext.getActive.map(
    _.listenerBus.metrics.metricRegistry.counter("queue.shared.numDroppedEvents").getCount).getOrElse(0L)
}
