// Package plan decides what edges serve, from objects of Kubernetes as they are: it knows neither
// clock nor network.
package plan
