package process

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestNoSecretGetsThrough cuts texts with secrets in them into pieces at random.
func TestNoSecretGetsThrough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.StringOfN(rapid.SampledFrom([]rune("ab")), shortestSecret, 10, -1)
		values := map[string]string{"A": letters.Draw(t, "a"), "B": letters.Draw(t, "b")}
		text := strings.Join(rapid.SliceOf(rapid.OneOf(rapid.StringOf(rapid.SampledFrom([]rune("abc\n"))), rapid.Just(values["A"]), rapid.Just(values["B"]))).Draw(t, "text"), "")
		m, shown := NewRedactor(values), ""
		for rest := text; rest != ""; {
			length := rapid.IntRange(1, len(rest)).Draw(t, "length")
			shown += m.text(rest[:length])
			rest = rest[length:]
		}
		shown += m.end()
		for _, value := range values {
			if strings.Contains(shown, value) {
				t.Fatalf("%q of %q is shown in %q", value, text, shown)
			}
		}
		if !strings.Contains(text, values["A"]) && !strings.Contains(text, values["B"]) && shown != text {
			t.Fatalf("%q, which has no secret, is shown as %q", text, shown)
		}
	})
}

func TestMaskOfSeveralLines(t *testing.T) {
	m := NewRedactor(map[string]string{"KEY": "-----BEGIN-----\nabcdefgh\nxyz\n-----END-----"})
	if got := m.text("the second line is abcdefgh, the third xyz\n") + m.end(); got != "the second line is ***, the third xyz\n" {
		t.Errorf("got %q", got)
	}
	if got := NewRedactor(nil).text("as it is"); got != "as it is" {
		t.Errorf("without a secret: %q", got)
	}
}
