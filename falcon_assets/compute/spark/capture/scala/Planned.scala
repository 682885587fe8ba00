package org.apache.spark.sql.falcon

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan, SQLExecution}

/** Sees plans whose rows go somewhere else than through a query, which no event reports: RDDs and caches. */
class Planned(session: org.apache.spark.sql.SparkSession) extends ColumnarRule {
  override def preColumnarTransitions: Rule[SparkPlan] = new Seen(session)
}

private class Seen(session: org.apache.spark.sql.SparkSession) extends Rule[SparkPlan] {
  override def apply(plan: SparkPlan): SparkPlan = {
    val classic = session.asInstanceOf[SparkSession]
    val context = classic.sparkContext
    if (context.getLocalProperty(SQLExecution.EXECUTION_ID_KEY) == null && !isInference) {
      val own = Option(context.getLocalProperty(Capture.Instance)).orElse(classic.conf.getOption(Capture.Instance))
      Capture.forEach(own.orElse(context.conf.getOption(Capture.Instance))) { found =>
        try found.addReads(Query.planned(plan)) catch { case error: Throwable => found.fail(error) }
      }
    }
    plan
  }

  /** Whether Spark looks for the schema of files, which is no use of them yet. */
  private def isInference: Boolean = Thread.currentThread.getStackTrace.exists(_.getMethodName.contains("inferSchema"))
}
