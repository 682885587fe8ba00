package org.apache.spark.sql.falcon

import org.apache.spark.SparkContext
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo, Literal}

/** Captures in programs and servers that others start (spark.sql.extensions).
  *
  * Clients of a Connect server, who can call nothing in its JVM, get the function falcon_captured(instance).
  */
class CaptureExtension extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    SparkContext.getActive.foreach(Capture.install(_: SparkContext))
    Capture.watch(extensions)
    extensions.injectFunction((
      FunctionIdentifier("falcon_captured"),
      new ExpressionInfo(classOf[CaptureExtension].getName, "falcon_captured"),
      (arguments: Seq[Expression]) => {
        val values = arguments.map(_.eval().toString)
        Literal(Capture.of(values.head, values(1).toLong))
      }))
  }
}
