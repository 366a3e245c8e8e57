package main

import "math/rand/v2"

// runner infers a batch of samples.
type runner interface {
	infer(batch int) error
}

// matrices is a network of two dense layers in plain Go. Its weights are read
// once a batch, and four samples share each read, as in any library: that is
// what batches save.
type matrices struct {
	width  int
	layers [2][]float32 // rows of weights
	buffer [3][]float32 // inputs, and the outputs of the layers, sample by sample
}

const mostSamples = 1024

func newMatrices(width int, seed uint64) *matrices {
	random := rand.New(rand.NewPCG(seed, 1))
	m := &matrices{width: width}
	for i := range m.layers {
		m.layers[i] = make([]float32, width*width)
		for j := range m.layers[i] {
			m.layers[i][j] = float32(random.NormFloat64()) / float32(width)
		}
	}
	for i := range m.buffer {
		m.buffer[i] = make([]float32, mostSamples*width)
	}
	for i := range m.buffer[0] {
		m.buffer[0][i] = random.Float32()
	}
	return m
}

func (m *matrices) infer(batch int) error {
	for i, weights := range m.layers {
		for sample := 0; sample < batch; {
			if batch-sample >= 4 {
				m.four(weights, m.buffer[i], m.buffer[i+1], sample)
				sample += 4
				continue
			}
			m.one(weights, m.buffer[i], m.buffer[i+1], sample)
			sample++
		}
	}
	return nil
}

func (m *matrices) one(weights, in, out []float32, sample int) {
	x := in[sample*m.width:][:m.width]
	for row := range m.width {
		w := weights[row*m.width:][:m.width]
		sum := float32(0)
		for i, weight := range w {
			sum += weight * x[i]
		}
		out[sample*m.width+row] = max(sum, 0)
	}
}

func (m *matrices) four(weights, in, out []float32, sample int) {
	n := m.width
	a, b, c, d := in[sample*n:][:n], in[(sample+1)*n:][:n], in[(sample+2)*n:][:n], in[(sample+3)*n:][:n]
	for row := range n {
		w := weights[row*n:][:n]
		var sumA, sumB, sumC, sumD float32
		for i, weight := range w {
			sumA += weight * a[i]
			sumB += weight * b[i]
			sumC += weight * c[i]
			sumD += weight * d[i]
		}
		out[sample*n+row], out[(sample+1)*n+row] = max(sumA, 0), max(sumB, 0)
		out[(sample+2)*n+row], out[(sample+3)*n+row] = max(sumC, 0), max(sumD, 0)
	}
}
