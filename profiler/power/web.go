package power

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// Authorization is the variable of the environment with the header that a meter in the web
// wants, if it wants one: it is no argument, which others could read.
const Authorization = "TANDEM_METER_AUTHORIZATION"

const (
	largest = 1 << 20         // bytes of an answer
	answers = 5 * time.Second // an answer takes no longer
)

// openWeb reads the number at the field of the JSON document at the address. The parts of
// the field are names and, in lists, numbers: "PowerControl.0.PowerConsumedWatts".
func openWeb(source string) (*Meter, error) {
	at, err := url.Parse(source)
	switch {
	case err != nil:
		return nil, fmt.Errorf("meter: %w", err)
	case at.User != nil:
		return nil, fmt.Errorf("meter %s: others can read a password in arguments: put the header into %s, such as \"Basic ...\"", at.Redacted(), Authorization)
	case at.Host == "" || at.Fragment == "":
		return nil, fmt.Errorf("meter %q: must be http://HOST/PATH#FIELD, such as http://plug.lan/rpc/Switch.GetStatus?id=0#apower", source)
	}
	field := at.Fragment
	at.Fragment = ""
	client := &http.Client{Timeout: answers}
	return polled(at.Host, func() (float64, error) {
		watts, err := ask(client, at.String(), field)
		if err != nil {
			err = fmt.Errorf("meter %s: %w", at.Host, err)
		}
		return watts, err
	})
}

func ask(client *http.Client, address, field string) (float64, error) {
	request, err := http.NewRequest(http.MethodGet, address, nil) //nolint:noctx // the client has a timeout
	if err != nil {
		return 0, err
	}
	if header := os.Getenv(Authorization); header != "" {
		request.Header.Set("Authorization", header)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("it answers %s (a header for it goes into %s)", response.Status, Authorization)
	}
	var document any
	if err := json.NewDecoder(io.LimitReader(response.Body, largest)).Decode(&document); err != nil {
		return 0, fmt.Errorf("its answer is no JSON: %w", err)
	}
	watts, found := numberAt(document, strings.Split(field, "."))
	if !found {
		return 0, fmt.Errorf("its answer has no number at %q", field)
	}
	return watts, valid(watts)
}

// numberAt follows the path; some plugs put their numbers in quotes.
func numberAt(document any, path []string) (float64, bool) {
	for _, part := range path {
		switch in := document.(type) {
		case map[string]any:
			document = in[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(in) {
				return 0, false
			}
			document = in[i]
		default:
			return 0, false
		}
	}
	switch number := document.(type) {
	case float64:
		return number, true
	case string:
		watts, err := strconv.ParseFloat(number, 64)
		return watts, err == nil
	}
	return 0, false
}
