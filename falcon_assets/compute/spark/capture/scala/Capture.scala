package org.apache.spark.sql.falcon

import java.util.concurrent.{CountDownLatch, TimeUnit}
import scala.collection.mutable
import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.module.scala.DefaultScalaModule
import org.apache.spark.SparkContext
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.classic.SparkSession

/** What is known of one instance. */
class Captured(val droppedBefore: Long) {
  private val reads = mutable.LinkedHashSet[Map[String, Any]]()
  private val writes = mutable.LinkedHashSet[Map[String, Any]]()
  private val unknown = mutable.LinkedHashSet[String]()
  private var problem: Option[String] = None
  private var collected = false

  /** Whether the program has got values of data: what it does later may come from them. */
  def hasCollected: Boolean = synchronized { collected }

  def add(query: Query): Unit = synchronized {
    query.reads.foreach(put(reads, _))
    query.writes.foreach(put(writes, _))
    query.unknown.foreach(put(unknown, _))
    collected ||= query.isCollected
  }
  def addJob(leaves: Seq[Leaf], writesFiles: Boolean): Unit = synchronized {
    leaves.filter(_.roots.nonEmpty).foreach(leaf => put(reads, leaf.asMap))
    leaves.flatMap(_.unknown).foreach(what => put(unknown, s"reads $what"))
    if (writesFiles) put(unknown, "writes files from an RDD")
    collected = true
  }
  def addReads(found: Seq[Map[String, Any]]): Unit = synchronized { found.foreach(put(reads, _)) }
  def addUnknown(what: String): Unit = synchronized { put(unknown, what) }
  def fail(error: Throwable): Unit = synchronized { problem = Some(error.toString.take(500)) }
  def asMap: Map[String, Any] = synchronized {
    Map("reads" -> reads.toSeq, "writes" -> writes.toSeq, "unknown" -> unknown.toSeq, "problem" -> problem)
  }
  private def put[A](where: mutable.LinkedHashSet[A], one: A): Unit =
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
      LocalFiles.install(context)
      listened = Some(context)
    }
  }

  /** Likewise, and sees what the children of a session plan. */
  def install(session: SparkSession): Unit = {
    install(session.sparkContext)
    watch(session.extensions)
  }

  def watch(extensions: SparkSessionExtensions): Unit =
    extensions.injectColumnar(session => new Planned(session))

  val Instance = "spark.sql.falcon.instance"
  val File = "spark.falcon.capture.file"
  /** Of what belongs to no instance. */
  val Nobody = "-"
  val MostInstances = 1000
  val MostOfInstance = 5000
  private val mapper = new ObjectMapper().registerModule(DefaultScalaModule)
  private val found = new mutable.LinkedHashMap[String, Captured]()
  private val open = mutable.LinkedHashSet[String]()
  private var dropped = 0L

  /** From now on, until it is forgotten, what nobody else does is of this instance. */
  def begin(instance: String): Unit = synchronized { open += instance }

  /** Does something with what is known of an instance.
    *
    * @param instance None: a thread or a session that says nothing. It is of the only instance that is open; of several
    *                 each may have done it.
    */
  def forEach(instance: Option[String])(what: Captured => Unit): Unit = instance match {
    case Some(Nobody) =>
    case Some(one) => what(captured(one))
    case None =>
      val all = synchronized { open.toSeq }
      if (all.size == 1) what(captured(all.head))
      else all.foreach(captured(_).addUnknown("does something in a session or thread of its own, beside others"))
  }

  private def captured(instance: String): Captured = synchronized {
    val one = found.getOrElseUpdate(instance, new Captured(dropped))
    while (found.size > MostInstances) found.remove(found.head._1)
    dropped = droppedEvents
    one
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

  def forget(instance: String): Unit = synchronized {
    found.remove(instance)
    open.remove(instance)
  }

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
