package rest

import (
	"context"
	"net/url"
	"strconv"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// PoolAdvice says how many GPUs should be awake, and which workers to wake or to
// drain; it takes an admin's or a viewer's token.
func (c PoolCalls) PoolAdvice(ctx context.Context, query protocol.PoolAdviceQuery) (protocol.PoolAdvice, error) {
	values := url.Values{}
	if query.Performance != 0 {
		values.Set("performance", strconv.FormatFloat(query.Performance, 'g', -1, 64))
	}
	if query.Least != 0 {
		values.Set("least", strconv.Itoa(query.Least))
	}
	return get[protocol.PoolAdvice](ctx, c.caller, path("pool", "advice"), values.Encode())
}
