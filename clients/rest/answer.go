package rest

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
)

const (
	// longestAsked bounds how long a server may ask us to stay away.
	longestAsked = 30 * time.Second
	maxProblem   = 1 << 20
)

// againAfter is how long to wait before another attempt, or never if the
// answer was for good.
func againAfter(response *http.Response) time.Duration {
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusInsufficientStorage:
		return retryAfter(response.Header)
	}
	return never
}

// retryAfter reads Retry-After: seconds, or a date by the server's own clock.
func retryAfter(header http.Header) time.Duration {
	asked := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.Atoi(asked); err == nil {
		return min(time.Duration(max(seconds, 0))*time.Second, longestAsked)
	}
	until, err := http.ParseTime(asked)
	now, errNow := http.ParseTime(header.Get("Date"))
	if err != nil || errNow != nil {
		return 0
	}
	return min(max(until.Sub(now), 0), longestAsked)
}

// problemOf decodes an answer that is no success. A server without a path or a field that we
// know is of another build, whether it says that or not.
func problemOf(r request, response *http.Response, agent string) error {
	var document struct {
		Code   problem.Code    `json:"code"`
		Detail string          `json:"detail"`
		Errors []problem.Field `json:"errors"`
	}
	data, _ := io.ReadAll(io.LimitReader(response.Body, maxProblem)) // what came is all there is
	if json.Unmarshal(data, &document) == nil && document.Code != "" {
		unknown := strings.HasPrefix(document.Detail, "there is nothing at this path") || slices.ContainsFunc(document.Errors, func(one problem.Field) bool { return one.Message == "is not a field of this request" })
		if agent != "" && unknown && !strings.Contains(document.Detail, "this server is") {
			document.Detail += " (this server is of another build than " + agent + ": upgrade the older one)"
		}
		return &problem.Error{Code: document.Code, Detail: document.Detail, Fields: document.Errors}
	}
	if response.StatusCode/100 == 3 {
		return problem.New(problem.Invalid, "%s %s is answered at %s: use that address", r.method, r.path, response.Header.Get("Location"))
	}
	if strings.HasPrefix(string(data), "Client sent an HTTP request to an HTTPS server") {
		return problem.New(problem.Unavailable, "%s speaks TLS: use https:// in the server's address, and --ca FILE (or TANDEM_CA) with its authority.pem if it made its certificate itself", response.Request.URL.Host)
	}
	return problem.New(codeOf(response.StatusCode), "%s %s: the server answered %s", r.method, r.path, response.Status)
}

// codeOf is the code of an answer without a document: from a proxy, say, or to
// a HEAD.
func codeOf(status int) problem.Code {
	known, ok := map[int]problem.Code{
		http.StatusUnauthorized: problem.Unauthorized, http.StatusForbidden: problem.Forbidden, http.StatusNotFound: problem.NotFound, http.StatusConflict: problem.Conflict,
		http.StatusTooManyRequests: problem.Exhausted, http.StatusRequestEntityTooLarge: problem.Exhausted,
		http.StatusBadGateway: problem.Unavailable, http.StatusServiceUnavailable: problem.Unavailable, http.StatusGatewayTimeout: problem.Unavailable,
		http.StatusRequestTimeout: problem.Unavailable, http.StatusInsufficientStorage: problem.Unavailable,
	}[status]
	switch {
	case ok:
		return known
	case status >= http.StatusInternalServerError:
		return problem.Internal
	}
	return problem.Invalid
}
