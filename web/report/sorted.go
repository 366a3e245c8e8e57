package report

import (
	"maps"
	"slices"
)

// sorted are the names in a map, in their order.
func sorted[V any](values map[string]V) []string {
	return slices.Sorted(maps.Keys(values))
}
