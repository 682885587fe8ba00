package org.apache.spark.sql.falcon

import org.apache.spark.sql.SaveMode
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.command._
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.v2._
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec
import org.apache.spark.sql.execution.streaming.runtime.IncrementalExecution

/** What one query read and wrote.
  *
  * @param unknown What nobody knows of it.
  * @param isCollected Whether the program has got values of data from it.
  */
case class Query(
    reads: Seq[Map[String, Any]], writes: Seq[Map[String, Any]], unknown: Seq[String], isCollected: Boolean)

object Query {
  private val MostPaths = 10000

  def of(execution: QueryExecution, isFailed: Boolean, hasCollected: Boolean): Query = {
    val analyzed = execution.analyzed
    val leaves = Leaves.of(analyzed).flatMap(Leaves.read)
    val targets = new Writes(execution.sparkSession, hasCollected).of(analyzed)
    val reads = leaves.filter(_.roots.nonEmpty).map(_.asMap).distinct ++
      (if (isFailed) Nil else scans(execution.executedPlan).distinct)
    val unknown = leaves.flatMap(_.unknown).map(what => s"reads $what") ++ (execution match {
      case _: IncrementalExecution => Seq("writes a stream")
      case _ => Nil
    })
    Query(reads, targets, unknown.distinct, leaves.exists(_.isData) && isCollected(analyzed))
  }

  /** What Spark is about to read for a plan that is no query: an RDD, a cache. */
  def planned(plan: SparkPlan): Seq[Map[String, Any]] = scans(plan).distinct

  /** Whether values come to the program: rows, variables, or metrics that it observes. */
  private def isCollected(plan: LogicalPlan): Boolean = {
    val root = plan match {
      case result: CommandResult => result.commandLogicalPlan
      case other => other
    }
    root match {
      case _: SetVariable | _: CreateVariable => true
      case _: Command => plan.exists(isObserved) || Leaves.inner(root).exists(_.exists(isObserved))
      case _ => true
    }
  }

  private def isObserved(plan: LogicalPlan): Boolean = plan match {
    case metrics: CollectMetrics => metrics.metrics.exists(_.references.nonEmpty)
    case _ => false
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
          Seq(Map("roots" -> roots, "paths" -> found.take(MostPaths), "isComplete" -> (found.size <= MostPaths)))
        case m: InMemoryTableScanExec => scans(m.relation.cachedPlan)
        case _ => Nil
      }
      own ++ other.children.flatMap(scans) ++ other.subqueries.flatMap(scans)
  }
}

/** Where a plan writes. */
private class Writes(session: SparkSession, hasCollected: Boolean) {
  def of(plan: LogicalPlan): Seq[Map[String, Any]] = plan match {
    case c: CommandResult => of(c.commandLogicalPlan)
    case i: InsertIntoHadoopFsRelationCommand =>
      Seq(into(i.outputPath.toString, i.query, i.outputColumnNames, i.mode == SaveMode.Append))
    case c: CreateDataSourceTableAsSelectCommand =>
      Seq(into(place(c.table), c.query, c.outputColumnNames, c.mode == SaveMode.Append))
    case d: InsertIntoDataSourceDirCommand =>
      Seq(elsewhere(d.provider, d.storage.locationUri.map(_.toString)))
    case s: SaveIntoDataSourceCommand =>
      val table = for (url <- s.options.get("url"); name <- s.options.get("dbtable")) yield Leaves.place(url, name)
      Seq(elsewhere(s.dataSource.getClass.getName, table.orElse(s.options.get("path"))))
    case i: InsertIntoDataSourceCommand =>
      Seq(elsewhere(i.logicalRelation.nodeName, Leaves.read(i.logicalRelation).flatMap(_.roots).headOption))
    case w: V2WriteCommand => w.table match {
      case r: DataSourceV2Relation if r.table.name == "noop-table" => Nil
      case r: DataSourceV2Relation => Seq(elsewhere(r.name, Leaves.place(r).headOption))
      case r => Seq(elsewhere(r.name, None))
    }
    case c: V2CreateTableAsSelectPlan => Seq(elsewhere(c.nodeName, Some(s"table:${c.tableName}")))
    case d: DeleteFromTable => Seq(elsewhere(d.nodeName, Leaves.of(d.table).flatMap(Leaves.read).flatMap(_.roots).headOption))
    case l: LoadDataCommand => Seq(elsewhere(l.nodeName, place(l.table)))
    case t: TruncateTableCommand => Seq(elsewhere(t.nodeName, place(t.tableName)))
    case w: DataWritingCommand => Seq(elsewhere(w.nodeName, None))
    case other => other.children.flatMap(of)
  }

  private def into(path: String, query: LogicalPlan, names: Seq[String], isAppend: Boolean): Map[String, Any] =
    Map("path" -> path, "isAppend" -> isAppend,
      "roots" -> Leaves.of(query).flatMap(Leaves.read).map(_.roots).filter(_.nonEmpty).distinct) ++ Columns.of(query, names, query.output, hasCollected)

  private def elsewhere(source: String, path: Option[String]): Map[String, Any] =
    Map("path" -> path, "source" -> source)

  private def place(name: TableIdentifier): Option[String] =
    scala.util.Try(place(session.sessionState.catalog.getTableMetadata(name))).toOption

  private def place(table: CatalogTable): String = table.storage.locationUri.getOrElse(
    session.sessionState.catalog.defaultTablePath(table.identifier)).toString
}
