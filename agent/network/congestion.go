package network

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"slices"

	"sextant/agent/api"
	"sextant/te/protection"
)

// Congestion asks a controller at its socket how congested links are. A link that is down is
// infinitely so.
func Congestion(ctx context.Context, socket string) (map[protection.Link]float64, error) {
	client := api.NewClientOf("controller", "sextant controller -f FILE", socket)
	list, err := api.Ask[api.List[api.WeighedLink]](ctx, client, http.MethodGet, "/v1/links", nil,
		nil)
	if err != nil {
		return nil, err
	}
	return weightsOf(list.Items), nil
}

// weightsOf names links as topologies do: of parallel ones by their order.
func weightsOf(links []api.WeighedLink) map[protection.Link]float64 {
	slices.SortFunc(links,
		func(a, b api.WeighedLink) int { return cmp.Compare(a.Number, b.Number) })
	weights := map[protection.Link]float64{}
	for _, l := range links {
		link := protection.Link{From: l.From, To: l.To}
		for _, taken := weights[link]; taken; _, taken = weights[link] {
			link.Number++
		}
		weights[link] = math.Inf(1)
		if l.Up && l.Weight != nil {
			weights[link] = *l.Weight
		}
	}
	return weights
}
