package studyfile_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/studyfile"
)

// TestDocumentedExamplesAreValid reads every YAML example of the reference;
// those that show a part only are completed.
func TestDocumentedExamplesAreValid(t *testing.T) {
	t.Parallel()
	text := string(read(t, "../../docs/study-file.md"))
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(examples) < 4 {
		t.Fatalf("%d examples", len(examples))
	}
	for _, example := range examples {
		yaml := example[1]
		for _, line := range strings.Split(sound, "\n") {
			field, _, _ := strings.Cut(line, ":")
			if !regexp.MustCompile("(?m)^" + field + ":").MatchString(yaml) {
				yaml = line + "\n" + yaml
			}
		}
		if _, err := studyfile.Parse([]byte(yaml), studyfile.YAML); err != nil {
			t.Errorf("%v in\n%s", err, yaml)
		}
	}
}

// TestEveryFieldIsDocumented compares the names that the decoder suggests with
// the reference.
func TestEveryFieldIsDocumented(t *testing.T) {
	t.Parallel()
	text := string(read(t, "../../docs/reference/study-file.md"))
	_, err := studyfile.Parse([]byte(`
zzzzzzzz: 1
objective: {zzzzzzzz: 1}
constraints: {zzzzzzzz: 1}
space: {x: {zzzzzzzz: 1}}
system: {zzzzzzzz: 1}
budget: {zzzzzzzz: 1, epochs: {zzzzzzzz: 1}}
search: {zzzzzzzz: 1}
stop: {zzzzzzzz: 1}
retry: {zzzzzzzz: 1}
resources: {zzzzzzzz: 1}
placement: {zzzzzzzz: 1}
similarity: {zzzzzzzz: 1}
confidential: {zzzzzzzz: 1}
encryption: {zzzzzzzz: 1}
hooks: {zzzzzzzz: 1}
when: {zzzzzzzz: 1}
service: {zzzzzzzz: 1, ready: {zzzzzzzz: 1}, stop: {zzzzzzzz: 1}}`), studyfile.YAML)
	var told *problem.Error
	if !errors.As(err, &told) {
		t.Fatal(err)
	}
	checked := 0
	for _, fault := range told.Fields {
		_, names, found := strings.Cut(fault.Message, ": it has ")
		if !found {
			continue
		}
		for _, name := range strings.Split(names, ", ") {
			checked++
			if !regexp.MustCompile("(?m)^\\| `([a-z_]+\\.)*" + name + "` \\|").MatchString(text) {
				t.Errorf("%s: %s is not in docs/reference/study-file.md", fault.Path, name)
			}
		}
	}
	if checked < 40 {
		t.Errorf("only %d names were checked", checked)
	}
}

func ExampleParse() {
	_, err := studyfile.Parse([]byte(`name: example
command: python train.py
objective: {metric: accuracy, direction: maximize}
space:
  learning_rate: {type: float, low: 0, high: 1e-1, log: true}
serach: {method: random}
`), studyfile.YAML)
	fmt.Println(err)
	// Output:
	// the study file has 3 faults
	//   command (line 2): must be a list of arguments, as no shell reads it: write ["python", "train.py"] (got python train.py)
	//   space.learning_rate.low (line 5): must be greater than 0, as the scale is logarithmic; or leave out log (got 0)
	//   serach (line 6): is not a field of a study: did you mean search?
}
