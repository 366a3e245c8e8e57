package zoo

import (
	"github.com/tandem-tune/tandem/inference_emu/graph"
)

// ResNet50 is the network of He et al. (2016), strided in the 3 x 3 convolution
// as MLPerf runs it (version 1.5).
func ResNet50(resolution int64, kind graph.Type) graph.Graph {
	l := start("resnet50", kind, picture(resolution))
	l.conv(64, 7, 2)
	l.pool("MaxPool", square(3, 2))
	for i, blocks := range []int{3, 4, 6, 3} {
		width := int64(64) << i
		for j := range blocks {
			stride := int64(1)
			if j == 0 && i > 0 {
				stride = 2
			}
			from := l.here()
			shortcut := from
			if j == 0 {
				l.conv(4*width, 1, stride)
				shortcut = l.here()
				l.back(from)
			}
			l.conv(width, 1, 1)
			l.conv(width, 3, stride)
			l.conv(4*width, 1, 1)
			l.add(shortcut)
		}
	}
	return classify(l, 1000)
}

// Xception is the network of Chollet (2017).
func Xception(resolution int64, kind graph.Type) graph.Graph {
	l := start("xception", kind, picture(resolution))
	separable := func(out int64) {
		l.depthwise(square(3, 1))
		l.conv(out, 1, 1)
	}
	down := func(first, second int64) {
		from := l.here()
		l.conv(second, 1, 2)
		shortcut := l.here()
		l.back(from)
		separable(first)
		separable(second)
		l.pool("MaxPool", square(3, 2))
		l.add(shortcut)
	}
	l.convolve(32, window{3, 3, 2, true})
	l.convolve(64, window{3, 3, 1, true})
	down(128, 128)
	down(256, 256)
	down(728, 728)
	for range 8 {
		from := l.here()
		for range 3 {
			separable(728)
		}
		l.add(from)
	}
	down(728, 1024)
	separable(1536)
	separable(2048)
	return classify(l, 1000)
}

// step is a convolution in a branch of an Inception module.
type step struct {
	out  int64
	view window
}

// branch runs steps from a point and says where it ends.
func (l *layers) branch(from point, steps ...step) point {
	l.back(from)
	for _, s := range steps {
		l.convolve(s.out, s.view)
	}
	return l.here()
}

// pooled is the branch of a module that pools first; without channels it only pools.
func (l *layers) pooled(from point, kind string, view window, out int64) point {
	l.back(from)
	l.pool(kind, view)
	if out > 0 {
		l.conv(out, 1, 1)
	}
	return l.here()
}

// InceptionV3 is the network of Szegedy et al. (2016).
func InceptionV3(resolution int64, kind graph.Type) graph.Graph {
	l := start("inception-v3", kind, picture(resolution))
	one, three, five := square(1, 1), square(3, 1), square(5, 1)
	reduce := window{3, 3, 2, true}
	l.convolve(32, reduce)
	l.convolve(32, window{3, 3, 1, true})
	l.convolve(64, three)
	l.pool("MaxPool", reduce)
	l.convolve(80, one)
	l.convolve(192, window{3, 3, 1, true})
	l.pool("MaxPool", reduce)
	for _, pooled := range []int64{32, 64, 64} {
		from := l.here()
		l.concatenate(l.branch(from, step{64, one}), l.branch(from, step{48, one}, step{64, five}),
			l.branch(from, step{64, one}, step{96, three}, step{96, three}), l.pooled(from, "AveragePool", three, pooled))
	}
	from := l.here()
	l.concatenate(l.branch(from, step{384, reduce}), l.branch(from, step{64, one}, step{96, three}, step{96, reduce}),
		l.pooled(from, "MaxPool", reduce, 0))
	wide, high := window{rows: 1, columns: 7, stride: 1}, window{rows: 7, columns: 1, stride: 1}
	for _, c := range []int64{128, 160, 160, 192} {
		from = l.here()
		l.concatenate(l.branch(from, step{192, one}), l.branch(from, step{c, one}, step{c, wide}, step{192, high}),
			l.branch(from, step{c, one}, step{c, high}, step{c, wide}, step{c, high}, step{192, wide}), l.pooled(from, "AveragePool", three, 192))
	}
	from = l.here()
	l.concatenate(l.branch(from, step{192, one}, step{320, reduce}),
		l.branch(from, step{192, one}, step{192, wide}, step{192, high}, step{192, reduce}), l.pooled(from, "MaxPool", reduce, 0))
	for range 2 {
		l.inceptionEnd()
	}
	return classify(l, 1000)
}

// inceptionEnd is the widest module, whose branches part once more.
func (l *layers) inceptionEnd() {
	from := l.here()
	one := square(1, 1)
	wide, high := step{384, window{rows: 1, columns: 3, stride: 1}}, step{384, window{rows: 3, columns: 1, stride: 1}}
	middle := l.branch(from, step{384, one})
	deep := l.branch(from, step{448, one}, step{384, square(3, 1)})
	l.concatenate(l.branch(from, step{320, one}), l.branch(middle, wide), l.branch(middle, high),
		l.branch(deep, wide), l.branch(deep, high), l.pooled(from, "AveragePool", square(3, 1), 192))
}
