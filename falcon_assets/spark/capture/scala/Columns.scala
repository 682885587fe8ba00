package org.apache.spark.sql.falcon

import scala.collection.mutable
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._

/** From which columns of files each column of a result comes, by the ids that Spark gives to expressions. */
object Columns {
  def of(plan: LogicalPlan, names: Seq[String], output: Seq[Attribute]): Map[String, Any] = {
    val columns = new Columns
    columns.walk(plan)
    val each = names.zip(output).map { case (name, attribute) =>
      val (from, isOpaque) = columns.trace(Set(attribute.exprId))
      Map("name" -> name, "type" -> attribute.dataType.simpleString, "isOpaque" -> isOpaque, "from" -> sources(from))
    }
    Map("columns" -> each, "rowsFrom" -> sources(columns.trace(columns.deciding.toSet)._1))
  }

  private def sources(from: Set[(Seq[String], String)]): Seq[Map[String, Any]] =
    from.toSeq.sortBy(_.toString).map { case (roots, column) => Map("roots" -> roots, "column" -> column) }
}

private class Columns {
  private val from = mutable.Map[ExprId, Set[ExprId]]().withDefaultValue(Set())
  private val leaves = mutable.Map[ExprId, (Seq[String], String)]()
  private val definitions = mutable.Map[Long, Seq[Attribute]]()
  private val opaque = mutable.Set[ExprId]()
  /** By these is decided which rows there are, and in which order. */
  val deciding: mutable.Set[ExprId] = mutable.Set[ExprId]()

  def walk(plan: LogicalPlan): Unit = {
    Leaves.inner(plan).foreach(walk)
    plan.expressions.foreach(_.foreach {
      case alias: Alias => add(alias.exprId, used(alias.child))
      case _ =>
    })
    deciding ++= decided(plan)
    plan match {
      case union: Union =>
        for ((column, at) <- union.output.zipWithIndex) add(column.exprId, union.children.map(_.output(at).exprId))
      case set: Except => alike(set.output, set.left.output)
      case set: SetOperation => alike(set.output, set.left.output); alike(set.output, set.right.output)
      case generate: Generate => generate.generatorOutput.foreach(column => add(column.exprId, used(generate.generator)))
      case expand: Expand =>
        for ((column, at) <- expand.output.zipWithIndex; row <- expand.projections) add(column.exprId, used(row(at)))
      case definition: CTERelationDef => definitions(definition.id) = definition.child.output
      case reference: CTERelationRef => definitions.get(reference.cteId).foreach(alike(reference.output, _))
      case leaf if Leaves.inner(leaf).isEmpty => source(leaf)
      case other => unexplained(other)
    }
  }

  /** By what an operator decides on rows: what it filters, joins, groups, compares or sorts by. */
  private def decided(plan: LogicalPlan): Iterable[ExprId] = plan match {
    case filter: Filter => used(filter.condition)
    case join: Join => join.condition.toSeq.flatMap(used)
    case aggregate: Aggregate => aggregate.groupingExpressions.flatMap(used)
    case sort: Sort => sort.order.flatMap(used)
    case distinct: Distinct => distinct.child.output.map(_.exprId)
    case distinct: Deduplicate => distinct.keys.map(_.exprId)
    case set @ (_: Except | _: Intersect) => set.children.flatMap(_.output).map(_.exprId)
    case _ => Nil
  }

  /** The columns that some come from, and whether code that nobody can look into is between. */
  def trace(ids: Set[ExprId]): (Set[(Seq[String], String)], Boolean) = {
    val seen = mutable.Set[ExprId]()
    def follow(one: ExprId): Unit = if (seen.add(one)) from(one).foreach(follow)
    ids.foreach(follow)
    (seen.flatMap(leaves.get).toSet, seen.exists(opaque.contains))
  }

  private def source(leaf: LogicalPlan): Unit = {
    val roots = Leaves.roots(leaf)
    if (roots.nonEmpty)
      (leaf.output ++ leaf.metadataOutput).foreach(column => leaves(column.exprId) = (roots, column.name))
    // What a program made from rows that it had collected may come from anything.
    else if (leaf.isInstanceOf[LocalRelation] || !leaf.isInstanceOf[OneRowRelation])
      leaf.output.foreach(opaque += _.exprId)
  }

  /** Columns that no rule explains come from everything below, and so do the rows: functions over whole rows. */
  private def unexplained(plan: LogicalPlan): Unit = {
    val below = plan.children.flatMap(_.output).map(_.exprId).toSet
    for (column <- plan.output if !below.contains(column.exprId) && !from.contains(column.exprId)) {
      add(column.exprId, below)
      opaque += column.exprId
      deciding ++= below
    }
  }

  private def alike(output: Seq[Attribute], input: Seq[Attribute]): Unit =
    output.zip(input).foreach { case (a, b) => add(a.exprId, Seq(b.exprId)) }

  private def used(expression: Expression): Set[ExprId] =
    expression.references.map(_.exprId).toSet ++ expression.collect {
      case query: SubqueryExpression => query.plan.output.headOption.map(_.exprId).toSet ++ query.references.map(_.exprId)
      case outer: OuterReference => Set(outer.exprId)
    }.flatten

  private def add(id: ExprId, used: Iterable[ExprId]): Unit = from(id) = from(id) ++ (used.toSet - id)
}
