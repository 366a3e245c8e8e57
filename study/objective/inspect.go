package objective

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
)

// allowed says what a formula may consist of, for messages.
const allowed = "a formula has numbers, metrics, + - * / **, comparisons, and, or, not, condition ? a : b, and the functions abs, exp, log, max, min, sqrt"

// operators are those of numbers and conditions.
var operators = [...]string{"+", "-", "*", "/", "**", "^", "==", "!=", "<", "<=", ">", ">=", "and", "&&", "or", "||", "not", "!"}

// functionNames are the functions of a formula.
func functionNames() []string { return []string{"abs", "exp", "log", "max", "min", "sqrt"} }

// functions are the formulas' functions, in place of everything the library has.
func functions() []expr.Option {
	one := func(name string, f func(float64) float64) expr.Option {
		return expr.Function(name, func(numbers ...any) (any, error) { return f(numbers[0].(float64)), nil }, new(func(float64) float64))
	}
	many := func(name string, f func(a, b float64) float64) expr.Option {
		return expr.Function(name, func(numbers ...any) (any, error) {
			result := numbers[0].(float64)
			for _, number := range numbers[1:] {
				result = f(result, number.(float64))
			}
			return result, nil
		}, new(func(float64, ...float64) float64))
	}
	return []expr.Option{
		one("abs", math.Abs), one("exp", math.Exp), one("log", math.Log), one("sqrt", math.Sqrt),
		many("max", math.Max), many("min", math.Min),
	}
}

// options is the library's configuration for reading alone.
func options(more ...expr.Option) *conf.Config {
	config := conf.CreateNew()
	for _, option := range append(functions(), append(more, expr.DisableAllBuiltins())...) {
		option(config)
	}
	config.MaxNodes = maxNodes
	return config
}

// inspector lets numbers and what computes with them pass, and collects the
// names of metrics.
type inspector struct {
	names map[string]bool
	fault string
}

func newInspector() *inspector { return &inspector{names: make(map[string]bool)} }

func (i *inspector) refuse(node ast.Node, format string, args ...any) {
	if i.fault == "" {
		i.fault = fmt.Sprintf(format, args...) + fmt.Sprintf(" (at character %d)", node.Location().From+1)
	}
}

func (i *inspector) inspect(node ast.Node) {
	switch n := node.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
	case *ast.IdentifierNode, *ast.MemberNode:
		name, ok := dotted(node)
		switch {
		case !ok:
			i.refuse(node, "has a part that is no metric's name: %s", allowed)
		case slices.Contains(functionNames(), name):
			i.refuse(node, "uses the function %s without its arguments", name)
		default:
			i.names[name] = true
		}
	case *ast.UnaryNode:
		i.operator(node, n.Operator)
		i.inspect(n.Node)
	case *ast.BinaryNode:
		i.operator(node, n.Operator)
		i.inspect(n.Left)
		i.inspect(n.Right)
	case *ast.ConditionalNode:
		i.inspect(n.Cond)
		i.inspect(n.Exp1)
		i.inspect(n.Exp2)
	case *ast.CallNode:
		i.call(n)
	default:
		i.refuse(node, "has more than a formula may have: %s", allowed)
	}
}

func (i *inspector) operator(node ast.Node, operator string) {
	if !slices.Contains(operators[:], operator) {
		i.refuse(node, "uses %s: %s", operator, allowed)
	}
}

func (i *inspector) call(n *ast.CallNode) {
	if name, ok := dotted(n.Callee); !ok || !slices.Contains(functionNames(), name) {
		i.refuse(n, "calls %s, which is no function of formulas: %s", strings.TrimSpace(n.Callee.String()), allowed)
		return
	}
	for _, argument := range n.Arguments {
		i.inspect(argument)
	}
}

// dotted is the name that an identifier, or a chain such as edge.latency_ms, spells.
func dotted(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.IdentifierNode:
		return n.Value, IsName(n.Value)
	case *ast.MemberNode:
		property, isText := n.Property.(*ast.StringNode)
		before, ok := dotted(n.Node)
		if !ok || !isText || n.Optional {
			return "", false
		}
		name := before + "." + property.Value
		return name, IsName(name)
	}
	return "", false
}

var namePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)

// IsName reports whether a metric of the name can stand in a study file:
// letters, digits and _, in parts with dots between them.
func IsName(name string) bool { return len(name) <= 128 && namePattern.MatchString(name) }

// rewriter makes one name of a chain, and every number a float: whole numbers
// would divide and overflow by rules of their own.
type rewriter struct{}

// Visit implements the library's visitor.
func (rewriter) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IntegerNode:
		ast.Patch(node, &ast.FloatNode{Value: float64(n.Value)})
	case *ast.MemberNode:
		if name, ok := dotted(n); ok {
			ast.Patch(node, &ast.IdentifierNode{Value: name})
		}
	}
}
