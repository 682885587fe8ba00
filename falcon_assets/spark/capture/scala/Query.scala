package org.apache.spark.sql.falcon

import org.apache.spark.sql.catalyst.catalog.{CatalogTable, HiveTableRelation}
import org.apache.spark.sql.catalyst.expressions.{Attribute, SubqueryExpression}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.command._
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.v2._
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec

/** What one query read and wrote. */
case class Query(reads: Seq[Map[String, Any]], writes: Seq[Map[String, Any]])

object Query {
  private val MostPaths = 10000

  def of(execution: QueryExecution, isFailed: Boolean): Query = {
    val analyzed = execution.analyzed
    val targets = writes(analyzed, execution.sparkSession)
    val reads = sources(analyzed).distinct ++ (if (isFailed) Nil else scans(execution.executedPlan).distinct)
    Query(reads, targets)
  }

  /** What the analyzed plan names: also what Spark finds out not to need. */
  private def sources(plan: LogicalPlan): Seq[Map[String, Any]] = Leaves.of(plan).flatMap { leaf =>
    val roots = Leaves.roots(leaf)
    if (roots.isEmpty) Nil else Seq(Map("roots" -> roots, "paths" -> Nil, "isComplete" -> false))
  }

  /** The files that were read, by their folders; a file that was named itself by its own path. */
  private def scans(plan: SparkPlan): Seq[Map[String, Any]] = plan match {
    case a: AdaptiveSparkPlanExec => scans(a.executedPlan)
    case q: QueryStageExec => scans(q.plan)
    case r: ReusedExchangeExec => scans(r.child)
    case c: CommandResultExec => scans(c.commandPhysicalPlan)
    case other =>
      val own = other match {
        case f: FileSourceScanExec =>
          val roots = f.relation.location.rootPaths.map(_.toString)
          val named = roots.toSet
          val found = f.selectedPartitions.filePartitionIterator.flatMap(_.files.map { file =>
            val path = file.getPath
            if (named.contains(path.toString)) path.toString else path.getParent.toString
          }).distinct.take(MostPaths + 1).toSeq
          Seq(Map("roots" -> roots, "paths" -> found.take(MostPaths), "isComplete" -> (found.size <= MostPaths),
            "rows" -> f.metrics.get("numOutputRows").map(_.value), "bytes" -> f.metrics.get("filesSize").map(_.value)))
        case m: InMemoryTableScanExec => scans(m.relation.cachedPlan)
        case _ => Nil
      }
      own ++ other.children.flatMap(scans) ++ other.subqueries.flatMap(scans)
  }

  private def writes(plan: LogicalPlan, session: SparkSession): Seq[Map[String, Any]] = plan match {
    case c: CommandResult => writes(c.commandLogicalPlan, session)
    case i: InsertIntoHadoopFsRelationCommand =>
      Seq(Map("path" -> i.outputPath.toString) ++ Columns.of(i.query, i.outputColumnNames, i.query.output))
    case c: CreateDataSourceTableAsSelectCommand => Seq(Map("path" -> place(c.table, session)))
    case s: SaveIntoDataSourceCommand => Seq(Map("path" -> s.options.get("path"), "source" -> s.dataSource.getClass.getName))
    case w: V2WriteCommand => w.table match {
      case r: DataSourceV2Relation if r.table.name == "noop-table" => Nil
      case r => Seq(Map("path" -> None, "source" -> r.name))
    }
    case w: DataWritingCommand => Seq(Map("path" -> None, "source" -> w.nodeName))
    case other => other.children.flatMap(writes(_, session))
  }

  private def place(table: CatalogTable, session: SparkSession): String = table.storage.locationUri.getOrElse(
    session.sessionState.catalog.defaultTablePath(table.identifier)).toString
}

/** The leaves of plans, which are what is read. */
object Leaves {
  def inner(plan: LogicalPlan): Seq[LogicalPlan] = plan.children ++ subqueries(plan) ++ (plan match {
    case c: CommandResult => Seq(c.commandLogicalPlan)
    case w: DataWritingCommand if w.children.isEmpty => Seq(w.query)
    case s: SaveIntoDataSourceCommand => Seq(s.query)
    case v: LeafRunnableCommand => v.innerChildren.collect { case p: LogicalPlan => p }
    case _ => Nil
  })

  def subqueries(plan: LogicalPlan): Seq[LogicalPlan] =
    plan.expressions.flatMap(_.collect { case s: SubqueryExpression => s.plan })

  def of(plan: LogicalPlan): Seq[LogicalPlan] = {
    val below = inner(plan)
    if (below.isEmpty) Seq(plan) else below.flatMap(of)
  }

  def roots(leaf: LogicalPlan): Seq[String] = leaf match {
    case l: LogicalRelation => l.relation match {
      case files: HadoopFsRelation => files.location.rootPaths.map(_.toString)
      case _ => Nil
    }
    case h: HiveTableRelation => h.tableMeta.storage.locationUri.map(_.toString).toSeq
    case r: DataSourceV2Relation => r.table match {
      case f: FileTable => f.fileIndex.rootPaths.map(_.toString)
      case _ => Nil
    }
    case _ => Nil
  }
}
