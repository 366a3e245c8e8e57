package studyfile

import (
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// maxHooks bounds how many receivers a study may name.
const maxHooks = 10

// readHooks reads who is told what happens in the study: a mapping, or a list of them.
func readHooks(s tree.Section) (hooks []definition.Hook) {
	n, at := s.Get("hooks")
	items, paths := tree.Elements(at, n)
	if len(items) > maxHooks {
		s.Fault(at, n, "must be at most %d hooks, not %d", maxHooks, len(items))
		return nil
	}
	named := map[string]bool{}
	for i, item := range items {
		if item.Kind != tree.Mapping {
			s.Wrong(paths[i], item, `a hook, such as {name: team, tell: [new_best, done]}`)
			continue
		}
		one, ok := s.Open(paths[i], item, "name", "tell", "failures", "spent")
		if !ok {
			continue
		}
		var hook definition.Hook
		readName(one, &hook.Name)
		if named[hook.Name] && hook.Name != "" {
			one.Fault(tree.Join(paths[i], "name"), item, "must be named once: write all its occasions into one entry")
		}
		named[hook.Name] = true
		if tell, where := one.Get("tell"); tell != nil {
			words, places := tree.Elements(where, tell)
			for at, word := range words {
				s.Places.Put(places[at], places[at], word.Line)
				hook.Tell = append(hook.Tell, definition.Occasion(word.Raw))
			}
		}
		one.Whole("failures", 1, definition.MostFailures, &hook.Failures)
		one.Number("spent", 0, 1, &hook.Spent)
		s.Report(hook.Check(paths[i] + ".")...)
		hooks = append(hooks, hook.Filled())
	}
	return hooks
}
