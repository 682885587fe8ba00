package org.apache.spark.sql.falcon

import scala.collection.mutable
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, AggregateFunction, Count, PivotFirst}
import org.apache.spark.sql.catalyst.plans.logical._

/** From which columns of files each column of a result comes, by the ids that Spark gives to expressions. */
object Columns {
  /** @param hasCollected Whether the program has got values of data before, which may be any value of the plan. */
  def of(plan: LogicalPlan, names: Seq[String], output: Seq[Attribute], hasCollected: Boolean): Map[String, Any] = {
    val columns = new Columns
    columns.walk(plan)
    val each = names.zip(output).map { case (name, attribute) =>
      val found = columns.trace(Seq(How.Identity -> attribute))
      Map("name" -> name, "type" -> attribute.dataType.simpleString, "from" -> sources(found.from),
        "isOpaque" -> found.isUnsure(hasCollected))
    }
    val rows = columns.trace(columns.deciding.toSeq)
    Map("columns" -> each, "rowsFrom" -> sources(rows.from),
      "areRowsOpaque" -> (columns.areRowsOpaque || rows.isUnsure(hasCollected)))
  }

  private def sources(from: Set[((Seq[String], String), String)]): Seq[Map[String, Any]] =
    from.groupMap(_._1)(_._2).toSeq.sortBy(_._1.toString).map { case ((roots, column), how) =>
      Map("roots" -> roots, "column" -> column, "how" -> how.toSeq.sorted)
    }
}

/** How something comes from a column, in the words of OpenLineage. */
private object How {
  val Identity = "IDENTITY"
  val Transformation = "TRANSFORMATION"
  val Aggregation = "AGGREGATION"
  val Conditional = "CONDITIONAL"
  val Window = "WINDOW"
  val Filter = "FILTER"
  val Join = "JOIN"
  val GroupBy = "GROUP_BY"
  val Sort = "SORT"
  private val direct = Seq(Identity, Transformation, Aggregation)

  /** What comes in one way from what comes in another: what only decides does so through whatever is between. */
  def through(how: String, step: String): String =
    if (!direct.contains(how)) how
    else if (!direct.contains(step)) step
    else direct(direct.indexOf(how).max(direct.indexOf(step)))
}

/** What expressions come from.
  *
  * @param isOpaque Whether code that nobody can look into is between.
  * @param hasValues Whether values of the program are in it.
  */
private case class Found(from: Set[((Seq[String], String), String)], isOpaque: Boolean, hasValues: Boolean) {
  def isUnsure(hasCollected: Boolean): Boolean = isOpaque || hasValues && hasCollected
}

private class Columns {
  private val made = mutable.Map[ExprId, Seq[Expression]]().withDefaultValue(Nil)
  private val leaves = mutable.Map[ExprId, Seq[(Seq[String], String)]]()
  private val definitions = mutable.Map[Long, Seq[Attribute]]()
  private val opaque = mutable.Set[ExprId]()
  private val values = mutable.Set[ExprId]()
  private val pivoted = mutable.Set[ExprId]()
  /** By these is decided which rows there are, and in which order. */
  val deciding: mutable.Buffer[(String, Expression)] = mutable.Buffer[(String, Expression)]()
  var areRowsOpaque = false

  def walk(plan: LogicalPlan): Unit = {
    plan match {
      case loop: UnionLoop => definitions(loop.id) = loop.output
      case aggregate: Aggregate => aggregate.expressions.foreach(_.foreach {
        case pivot: PivotFirst => pivoted ++= pivot.pivotColumn.references.map(_.exprId)
        case _ =>
      })
      case _ =>
    }
    deciding ++= decided(plan)
    Leaves.inner(plan).foreach(walk)
    plan.expressions.foreach(_.foreach {
      case alias: Alias => add(alias.exprId, Seq(alias.child))
      case _ =>
    })
    plan match {
      case union: Union =>
        for ((column, at) <- union.output.zipWithIndex) add(column.exprId, union.children.map(_.output(at)))
      case loop: UnionLoop => alike(loop.output, loop.anchor.output); alike(loop.output, loop.recursion.output)
      case set: Except => alike(set.output, set.left.output)
      case set: SetOperation => alike(set.output, set.left.output); alike(set.output, set.right.output)
      case generate: Generate => generate.generatorOutput.foreach(column => add(column.exprId, Seq(generate.generator)))
      case expand: Expand =>
        for ((column, at) <- expand.output.zipWithIndex; row <- expand.projections) add(column.exprId, Seq(row(at)))
      case definition: CTERelationDef => definitions(definition.id) = definition.child.output
      case reference: CTERelationRef => definitions.get(reference.cteId).foreach(alike(reference.output, _))
      case reference: UnionLoopRef => definitions.get(reference.loopId).foreach(alike(reference.output, _))
      case _: LateralJoin => // its columns are those of both sides
      case leaf if Leaves.inner(leaf).isEmpty => source(leaf)
      case other => unexplained(other)
    }
  }

  /** By what an operator decides on rows: what it filters, joins, groups, compares, repeats, limits or sorts by. */
  private def decided(plan: LogicalPlan): Iterable[(String, Expression)] = {
    val how = plan match {
      case _: Join | _: LateralJoin | _: AsOfJoin => How.Join
      case _: Aggregate | _: Distinct | _: Deduplicate => How.GroupBy
      case _: Sort => How.Sort
      case _ => How.Filter
    }
    decisions(plan).map(how -> _)
  }

  private def decisions(plan: LogicalPlan): Iterable[Expression] = plan match {
    case filter: Filter => Seq(filter.condition)
    case join: Join => join.condition
    case join: LateralJoin => join.condition
    case join: AsOfJoin => join.expressions
    case aggregate: Aggregate => aggregate.groupingExpressions.filterNot {
      case one: NamedExpression => pivoted(one.exprId) // each becomes a column
      case _ => false
    }
    case sort: Sort => sort.order
    case distinct: Distinct => distinct.child.output
    case distinct: Deduplicate => distinct.keys
    case generate: Generate => Seq(generate.generator)
    case limit: GlobalLimit => Seq(limit.limitExpr)
    case tail: Tail => Seq(tail.limitExpr)
    case offset: Offset => Seq(offset.offsetExpr)
    case set @ (_: Except | _: Intersect) => set.children.flatMap(_.output)
    case _ => Nil
  }

  /** What some expressions come from, each in some way. */
  def trace(expressions: Seq[(String, Expression)]): Found = {
    val seen = mutable.Set[(ExprId, List[String], String)]()
    var from = Set[((Seq[String], String), String)]()
    var isOpaque, hasValues = false

    def follow(id: ExprId, fields: List[String], how: String): Unit = if (seen.add((id, fields, how))) {
      isOpaque ||= opaque(id)
      hasValues ||= values(id)
      val read = if (fields.isEmpty) how else How.through(how, How.Transformation)
      leaves.get(id).foreach(from ++= _.map(_ -> read))
      made(id).foreach(visit(_, fields, how))
    }

    /** Only some field of a structure is wanted, where fields are said. */
    def visit(expression: Expression, fields: List[String], how: String): Unit = {
      def all(several: Iterable[Expression], step: String = How.Transformation): Unit =
        several.foreach(visit(_, Nil, How.through(how, step)))
      expression match {
        case attribute: Attribute => follow(attribute.exprId, fields, how)
        case alias: Alias => visit(alias.child, fields, how)
        case outer: OuterReference => follow(outer.exprId, fields, how)
        case get: GetStructField => visit(get.child, get.extractFieldName :: fields, how)
        case struct: CreateNamedStruct =>
          struct.names.map(_.toString).indexOf(fields.headOption.orNull) match {
            case -1 => all(struct.valExprs)
            case at => visit(struct.valExprs(at), fields.tail, how)
          }
        case update: UpdateFields if fields.nonEmpty =>
          update.fieldOps.reverse.collectFirst { case WithField(name, value) if name == fields.head => value } match {
            case Some(value) => visit(value, fields.tail, how)
            case None => visit(update.structExpr, fields, how)
          }
        case count: Count => all(count.children.filterNot(_.isInstanceOf[Literal]), How.Aggregation)
        case one: AggregateExpression =>
          visit(one.aggregateFunction, Nil, How.through(how, How.Aggregation))
          all(one.filter, How.Conditional)
        case one: AggregateFunction => all(one.children, How.Aggregation)
        case one: WindowExpression =>
          visit(one.windowFunction, Nil, How.through(how, How.Transformation))
          all(Seq(one.windowSpec), How.Window)
        case one: If =>
          all(Seq(one.predicate), How.Conditional)
          all(Seq(one.trueValue, one.falseValue))
        case one: CaseWhen =>
          all(one.branches.map(_._1), How.Conditional)
          all(one.branches.map(_._2) ++ one.elseValue)
        case _: Literal | _: VariableReference => hasValues = true
        case exists: Exists => all(exists.children)
        case query: SubqueryExpression => all(query.children ++ columnsOf(query))
        case other =>
          hasValues ||= other.isInstanceOf[UserDefinedExpression] // it may remember anything
          all(other.children)
      }
    }
    expressions.foreach { case (how, expression) => visit(expression, Nil, how) }
    Found(from, isOpaque, hasValues)
  }

  private def columnsOf(query: SubqueryExpression): Seq[Attribute] = query match {
    case one: ScalarSubquery => one.plan.output.take(1)
    case other => other.plan.output
  }

  private def source(leaf: LogicalPlan): Unit = {
    val read = Leaves.read(leaf)
    if (read.nonEmpty && read.forall(one => one.hasColumns && one.roots.nonEmpty))
      for (column <- leaf.output ++ leaf.metadataOutput) leaves(column.exprId) = read.map(one => (one.roots, column.name))
    else if (read.nonEmpty) {
      leaf.output.foreach(opaque += _.exprId)
      areRowsOpaque = true
    } else {
      // What a program made from rows that it had collected may come from any of these.
      leaf.output.foreach(values += _.exprId)
      if (!leaf.isInstanceOf[OneRowRelation]) deciding ++= leaf.output.map(How.Filter -> _)
    }
  }

  /** Columns that no rule explains come from everything below, and so do the rows: functions over whole rows. */
  private def unexplained(plan: LogicalPlan): Unit = {
    val below = plan.children.flatMap(_.output)
    val ids = below.map(_.exprId).toSet
    for (column <- plan.output if !ids.contains(column.exprId) && !made.contains(column.exprId)) {
      add(column.exprId, below)
      opaque += column.exprId
      deciding ++= below.map(How.Filter -> _)
      areRowsOpaque = true
    }
  }

  private def alike(output: Seq[Attribute], input: Seq[Attribute]): Unit =
    output.zip(input).foreach { case (a, b) => add(a.exprId, Seq(b)) }

  private def add(id: ExprId, expressions: Seq[Expression]): Unit = made(id) = (made(id) ++ expressions).distinct
}
