package device

import (
	"regexp"
	"slices"
	"strings"
)

// Of a processor's name: what everybody's has, what a clock is, and the numbers
// that tell one model from another.
var (
	word  = regexp.MustCompile(`[a-z0-9.+]+`)
	clock = regexp.MustCompile(`^[0-9.]+[gm]hz$`)
	noise = []string{"r", "tm", "c", "cpu", "processor", "processors", "with", "revision"}
	// desktop are the makers of processors with another instruction set than Arm's.
	desktop = []string{"intel", "amd", "xeon", "epyc", "ryzen", "genuineintel", "authenticamd"}
)

// MayBe reports whether a machine whose kernel names its processor so may be the
// device. A kernel that names none, or the instruction set alone (ARMv8), leaves
// that open.
func (d Device) MayBe(kernel string) bool {
	told, own := words(kernel), words(d.Processor.Value)
	other := func(names []string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(desktop, name) })
	}
	switch {
	case len(told) == 0, allAmong(own, words(unknownProcessor)):
		return true
	case strings.HasPrefix(told[0], "arm") || told[0] == "aarch64":
		return !other(own)
	case !slices.ContainsFunc(told, numbered): // it tells a family, such as Intel Xeon
		return allAmong(told, own)
	}
	for _, cluster := range d.Clusters { // Cortex-A72
		if allAmong(told, words(cluster.Core)) {
			return true
		}
	}
	return allAmong(slices.DeleteFunc(own, func(name string) bool { return !numbered(name) && !slices.Contains(desktop, name) }), told)
}

// words are the words of a processor's name that tell it from others.
func words(name string) []string {
	return slices.DeleteFunc(word.FindAllString(strings.ToLower(name), -1), func(one string) bool {
		return slices.Contains(noise, one) || clock.MatchString(one)
	})
}

// numbered reports whether a word has a digit, as the names of models do.
func numbered(word string) bool { return strings.ContainsAny(word, "0123456789") }

// allAmong reports whether all of the words are among the others.
func allAmong(some, all []string) bool {
	return !slices.ContainsFunc(some, func(one string) bool { return !slices.Contains(all, one) })
}
