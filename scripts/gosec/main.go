// Command gosec looks for risky constructs in packages, as gosec's own command does.
// That one takes 25 times as long: it calls go list for each package, and go again
// wherever it needs Go's version. It also brings the clients of three language models.
//
//	gosec -exclude G104,G204 ./web/api ./store/sqlite
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/securego/gosec/v2"
	"github.com/securego/gosec/v2/analyzers"
	"github.com/securego/gosec/v2/issue"
	"github.com/securego/gosec/v2/rules"
	"golang.org/x/tools/go/packages"
)

func main() {
	excluded := flag.String("exclude", "", "the rules that are not looked for, with commas between them")
	flag.Parse()
	found, err := check(strings.Split(*excluded, ","), flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "gosec:", err)
		os.Exit(1)
	}
	for _, one := range found {
		fmt.Printf("%s:%s: %s: %s (confidence %s, severity %s)\n%s\n", one.File, one.Line, one.RuleID, one.What, one.Confidence, one.Severity, one.Code)
	}
	if len(found) > 0 {
		os.Exit(1)
	}
}

// check says what the rules find in the packages with no less than medium confidence.
func check(excluded, patterns []string) ([]*issue.Issue, error) {
	loaded, err := packages.Load(&packages.Config{Mode: gosec.LoadMode}, patterns...)
	if err != nil {
		return nil, err
	}
	for _, one := range loaded {
		if one.Module != nil && one.Module.Main {
			err = errors.Join(err, os.Setenv("GOSECGOVERSION", "go"+one.Module.GoVersion)) // or each rule asks go
		}
	}
	analyzer := gosec.NewAnalyzer(gosec.NewConfig(), false, false, false, 1, log.New(io.Discard, "", 0))
	analyzer.LoadRules(rules.Generate(false, rules.NewRuleFilter(true, excluded...)).RulesInfo())
	analyzer.LoadAnalyzers(analyzers.Generate(false, analyzers.NewAnalyzerFilter(true, excluded...)).AnalyzersInfo())
	for _, one := range loaded {
		for _, broken := range one.Errors {
			err = errors.Join(err, broken)
		}
		analyzer.CheckRules(one)
		analyzer.CheckAnalyzers(one)
	}
	found, _, faults := analyzer.Report()
	for file, list := range faults {
		for _, fault := range list {
			err = errors.Join(err, fmt.Errorf("%s:%d: %s", file, fault.Line, fault.Err))
		}
	}
	found = slices.DeleteFunc(found, func(one *issue.Issue) bool { return one.Confidence < issue.Medium })
	slices.SortFunc(found, func(a, b *issue.Issue) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) })
	return found, err
}
