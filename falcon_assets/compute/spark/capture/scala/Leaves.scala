package org.apache.spark.sql.falcon

import org.apache.spark.rdd._
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.command._
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.jdbc.{JDBCOptions, JDBCRelation}
import org.apache.spark.sql.execution.datasources.v2._
import org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTable
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable

/** What a leaf of a plan reads.
  *
  * @param roots What was to be read; empty: nothing, or nobody knows what.
  * @param paths The folders of the files, where these are all of them.
  * @param unknown What it is, if nobody knows what it reads.
  * @param hasColumns Whether the columns of the leaf are those of the data.
  */
case class Leaf(
    roots: Seq[String] = Nil, paths: Option[Seq[String]] = None, unknown: Option[String] = None,
    hasColumns: Boolean = true) {
  def isData: Boolean = roots.nonEmpty || unknown.nonEmpty
  def asMap: Map[String, Any] = Map("roots" -> roots, "paths" -> paths.getOrElse(Nil), "isComplete" -> paths.nonEmpty)
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

  /** What a leaf reads; several for what was made from RDDs of several. */
  def read(leaf: LogicalPlan): Seq[Leaf] = leaf match {
    case l: LogicalRelation => l.relation match {
      case files: HadoopFsRelation => Seq(Leaf(files.location.rootPaths.map(_.toString)))
      case table: JDBCRelation => Seq(Leaf(Seq(place(table.jdbcOptions))))
      case other => Seq(Leaf(unknown = Some(s"a relation of the class ${other.getClass.getName}")))
    }
    case h: HiveTableRelation => Seq(Leaf(h.tableMeta.storage.locationUri.map(_.toString).toSeq))
    case r: DataSourceV2Relation => Seq(Leaf(place(r)))
    case r: DataSourceV2ScanRelation => read(r.relation)
    case r: LogicalRDD => Rdds.leaves(r.rdd)
    case r: ExternalRDD[_] => Rdds.leaves(r.rdd)
    case l: LoadDataCommand => Seq(Leaf(Seq(l.path)))
    case _: LocalRelation | _: OneRowRelation | _: Range | _: CTERelationRef | _: UnionLoopRef => Nil
    // What commands are about, and commands that only look or set something, have no rows.
    case other if isSpark(other) && (other.isInstanceOf[Command] || other.nodeName.startsWith("Resolved")) => Nil
    case other => Seq(Leaf(unknown = Some(s"what Spark calls ${other.nodeName}")))
  }

  private def isSpark(plan: LogicalPlan): Boolean = plan.getClass.getName.startsWith("org.apache.spark.sql.")

  def place(relation: DataSourceV2Relation): Seq[String] = relation.table match {
    case files: FileTable => files.fileIndex.rootPaths.map(_.toString)
    case table: JDBCTable => Seq(place(table.jdbcOptions))
    case table: PythonTable => Seq(s"python:${table.name}")
    case table =>
      val named = relation.identifier.map(one => (one.namespace :+ one.name).mkString("."))
      Seq("table:" + (relation.catalog.map(_.name).toSeq ++ named.orElse(Some(table.name))).mkString("."))
  }

  def place(options: JDBCOptions): String = place(options.url, options.tableOrQuery)

  /** A table of a database, without what the URL says besides, as a password; of a query only that it is one. */
  def place(url: String, table: String): String = {
    val where = url.takeWhile(one => one != '?' && one != ';').replaceFirst("//[^/@]*@", "//")
    where + "#" + (if (table.trim.startsWith("(")) "a query" else table)
  }
}

/** What RDDs were made from. */
object Rdds {
  /** Made in the program, or from what Spark has planned, which was seen then. */
  private val Harmless = Set("ParallelCollectionRDD", "EmptyRDD", "ReliableCheckpointRDD", "LocalCheckpointRDD",
    "FileScanRDD", "DataSourceRDD", "JDBCRDD")

  def leaves(rdd: RDD[_]): Seq[Leaf] = {
    val seen = scala.collection.mutable.Map[Int, RDD[_]]()
    var waiting = List[RDD[_]](rdd)
    while (waiting.nonEmpty) {
      val one = waiting.head
      waiting = waiting.tail
      if (!seen.contains(one.id)) {
        seen(one.id) = one
        waiting = one.dependencies.map(_.rdd).toList ++ waiting
      }
    }
    val files = seen.values.toSeq.sortBy(_.id).collect { case scan: FileScanRDD =>
      scan.filePartitions.flatMap(_.files).map(_.toPath.getParent.toString).distinct
    }
    files.filter(_.nonEmpty).map(found => Leaf(found, Some(found), hasColumns = false)) ++ leaves(seen.values.toSeq.map { one =>
      (one.id, Option(one.name).getOrElse(one.getClass.getSimpleName), one.dependencies.map(_.rdd.id))
    })
  }

  /** By ids, names (the class, if nobody gave one) and the ids of what each was made from: what those read that were made
    * from no other. Their names, or those of what was made from them at once, are the paths of files.
    */
  def leaves(rdds: Seq[(Int, String, Seq[Int])]): Seq[Leaf] =
    for ((id, name, above) <- rdds.distinct.sortBy(_._1); if above.isEmpty; leaf <- named(name)) yield {
      val after = rdds.filter(_._3.contains(id)).map(_._2).filter(_.contains("/"))
      if (leaf.unknown.nonEmpty && after.nonEmpty) named(after.head).head else leaf
    }

  private def named(name: String): Seq[Leaf] =
    if (name.contains("/")) Seq(Leaf(name.split(",").toSeq, hasColumns = false))
    else if (Harmless(name)) Nil
    else Seq(Leaf(unknown = Some(s"an RDD that is called $name"), hasColumns = false))
}
