package main

import (
	"fmt"
	"strings"

	"github.com/tandem-tune/tandem/bench/edgetune/dopeml"
	"github.com/tandem-tune/tandem/inference_emu/graph"
)

// size is a published architecture at its own resolution: millions of
// multiply-accumulates and of parameters, and how many layers it has.
type size struct {
	macs, parameters, resolution float64
	convolutions, depthwise      float64
}

// features are what is published of a model: multiply-accumulates and
// parameters by Howard and others 2017 (MobileNet, tables 6 to 9), Sandler and
// others 2018 with the model page of TensorFlow (V2), Howard and others 2019
// and the same page (V3), and the page of EfficientNet-lite. The multiply-
// accumulates go with the square of the resolution.
func features(one result) (dopeml.Model, error) {
	what, known := published(one)
	if !known {
		return dopeml.Model{}, fmt.Errorf("nothing is known of the architecture of %s", one.model)
	}
	resolution := what.resolution
	if one.resolution > 0 && one.family != "efficientnet" {
		resolution = one.resolution
	}
	scale := resolution / what.resolution
	model := dopeml.Model{Name: one.model, Operations: 2e6 * what.macs * scale * scale, Parameters: 1e6 * what.parameters,
		WeightBytes: 4e6 * what.parameters, InputElements: 3 * resolution * resolution,
		Layers: map[graph.Class]float64{graph.Convolution: what.convolutions, graph.Depthwise: what.depthwise}}
	if one.quantized {
		model.Quantized, model.WeightBytes = 1, 1e6*what.parameters
	}
	return model, nil
}

func published(one result) (size, bool) {
	switch one.family {
	case "mobilenet_v1":
		what, known := map[float64]size{1: {569, 4.24, 224, 15, 13}, 0.75: {317, 2.59, 224, 15, 13}, 0.5: {150, 1.34, 224, 15, 13}, 0.25: {41, 0.47, 224, 15, 13}}[one.width]
		return what, known
	case "mobilenet_v2":
		what, known := map[float64]size{1.4: {582, 6.06, 224, 36, 17}, 1.3: {509, 5.34, 224, 36, 17}, 1: {300, 3.47, 224, 36, 17},
			0.75: {209, 2.61, 224, 36, 17}, 0.5: {97, 1.95, 224, 36, 17}, 0.35: {59, 1.66, 224, 36, 17}}[one.width]
		return what, known
	case "mobilenet_v3":
		small, minimal, narrow := strings.Contains(one.model, "small"), strings.Contains(one.model, "minimalistic"), strings.Contains(one.model, "0.75")
		switch {
		case small && minimal:
			return size{65, 2.0, 224, 24, 11}, true
		case small && narrow:
			return size{44, 2.04, 224, 42, 11}, true
		case small:
			return size{57, 2.54, 224, 42, 11}, true // with two convolutions for each squeeze
		case minimal:
			return size{209, 3.9, 224, 32, 15}, true
		case narrow:
			return size{155, 3.99, 224, 48, 15}, true
		}
		return size{217, 5.4, 224, 48, 15}, true
	case "efficientnet":
		lite := one.model[strings.Index(one.model, "lite"):]
		what, known := map[string]size{"lite0": {407, 4.7, 224, 33, 16}, "lite1": {631, 5.4, 240, 43, 21}, "lite2": {899, 6.1, 260, 43, 21},
			"lite3": {1440, 8.2, 280, 49, 24}, "lite4": {2640, 13, 300, 61, 30}}[strings.TrimSuffix(strings.TrimSuffix(lite, "-non-quantized"), "-quantized")]
		return what, known
	}
	return size{}, false
}
