package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	fence  = regexp.MustCompile("(?ms)^```(?:sh|bash|console)\n(.*?)^```")
	inline = regexp.MustCompile("`((?:\\$ )?tandem [^`]+)`")
	// before is what may stand before a command, name what stands for a value of the user's.
	before = regexp.MustCompile(`^(\$|sudo|exec|nice|\w+=.*)$`)
	name   = regexp.MustCompile(`^[A-Z]+$`)
	// word is one of a command line: quoted parts and plain ones, or what ends a command.
	word = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|\\.|[^\s'"\\|;&<>()#]|[^\s'"\\|;&<>()]#)+|[|;&<>()#]+`)
)

// commandLines are those of tandem in shell text, as words.
func commandLines(text string) (list [][]string) {
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		var words []string
		keep := func() {
			for len(words) > 0 && before.MatchString(words[0]) {
				words = words[1:]
			}
			if len(words) > 0 && filepath.Base(words[0]) == "tandem" {
				list = append(list, words[1:])
			}
			words = nil
		}
		for _, one := range word.FindAllString(line, -1) {
			if strings.ContainsRune("|;&()", rune(one[0])) {
				keep()
				continue
			}
			if one[0] == '#' {
				break
			}
			words = append(words, strings.NewReplacer("'", "", `"`, "").Replace(one))
		}
		keep()
	}
	return list
}

// What documents tell people to type is there: the commands, and their flags with values
// that can be read.
func TestTheCommandsThatDocumentsNameExist(t *testing.T) {
	count := 0
	check := func(path string) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var lines [][]string
		for _, found := range fence.FindAllSubmatch(content, -1) {
			lines = append(lines, commandLines(string(found[1]))...)
		}
		for _, found := range inline.FindAllSubmatch(fence.ReplaceAll(content, nil), -1) {
			lines = append(lines, commandLines(string(found[1]))...)
		}
		for _, args := range lines {
			if slices.Contains(args, "COMMAND") {
				continue
			}
			count++
			told := "tandem " + strings.Join(args, " ")
			if end := slices.IndexFunc(args, func(one string) bool { return one == "..." || one == "<" || one == ">" }); end >= 0 {
				args = args[:end]
			}
			for i := range args {
				if i > 0 && strings.HasPrefix(args[i-1], "--") && name.MatchString(args[i]) {
					args[i] = "1"
				}
			}
			root := rootCommand()
			root.InitDefaultCompletionCmd()
			command, rest, err := root.Find(args)
			if err != nil || command.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
				t.Errorf("%s: there is no %q", path, told)
				continue
			}
			// A sentence may name a flag without its value.
			if err := command.ParseFlags(rest); err != nil && !strings.Contains(err.Error(), "help requested") && !strings.HasPrefix(err.Error(), "flag needs an argument: "+rest[len(rest)-1]) {
				t.Errorf("%s: %s: %v", path, told, err)
			}
		}
	}
	for _, path := range []string{"../../README.md", "../../SECURITY.md", "../../CONTRIBUTING.md"} {
		check(path)
	}
	err := filepath.WalkDir("../../docs", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" && filepath.Base(filepath.Dir(path)) != "decisions" { // which tell of the past
			check(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("%d command lines", count); count < 200 {
		t.Errorf("only %d command lines were found", count)
	}
}
