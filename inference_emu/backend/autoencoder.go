package backend

import (
	"math"
	"math/rand/v2"
)

// The autoencoder's latent space, and the weights of its losses.
const (
	latent = 4
	// rebuild weighs the error of the columns that are rebuilt.
	rebuild = 0.1
	// regular weighs the divergence of the latent distribution from the normal one.
	regular = 0.002
	// draws is over how many latent points a prediction is averaged.
	draws = 16
)

// autoencoder is a variational autoencoder (Kingma and Welling 2014) whose
// latent point, with the backend as a condition, predicts the targets: the
// second model of DOPE-ML (section 4, figure 3). The encoder sees all columns;
// the decoder rebuilds those of the model and the request; the head predicts.
type autoencoder struct {
	all                    []float64
	encoder, decoder, head network
	loss                   loss
	random                 *rand.Rand
	points                 [][]float64 // the normal draws of every prediction
}

func newAutoencoder(loss loss, random *rand.Rand) learner {
	columns, condition := len(loss.scale.columns), loss.scale.condition
	shapes := [][]int{
		{columns, hidden, 2 * latent},
		{latent + condition, hidden, columns - condition},
		{latent + condition, hidden, len(loss.logarithmic)},
	}
	a := &autoencoder{loss: loss, random: random}
	total := 0
	for _, sizes := range shapes {
		total += weightsFor(sizes)
	}
	a.all = make([]float64, total)
	at := 0
	for i, into := range []*network{&a.encoder, &a.decoder, &a.head} {
		end := at + weightsFor(shapes[i])
		*into = network{sizes: shapes[i], weights: a.all[at:end:end]}
		into.start(random)
		at = end
	}
	for range draws / 2 { // with each draw its opposite
		point, opposite := make([]float64, latent), make([]float64, latent)
		for j := range point {
			point[j] = random.NormFloat64()
			opposite[j] = -point[j]
		}
		a.points = append(a.points, point, opposite)
	}
	return a
}

func (a *autoencoder) weights() []float64 { return a.all }

func (a *autoencoder) gradient(input, target, gradient []float64) float64 {
	noise := make([]float64, latent)
	for j := range noise {
		noise[j] = a.random.NormFloat64()
	}
	return a.gradientAt(input, target, noise, gradient)
}

// gradientAt is gradient for one draw of the latent noise.
func (a *autoencoder) gradientAt(input, target, noise, gradient []float64) float64 {
	one, two := len(a.encoder.weights), len(a.encoder.weights)+len(a.decoder.weights)
	encoded := a.encoder.forward(input)
	code := encoded[len(encoded)-1]
	point := a.point(code, noise, input)

	predicted := a.head.forward(point)
	total, slopes := a.loss.of(predicted[len(predicted)-1], target)
	below := a.head.backward(predicted, slopes, gradient[two:])

	rebuilt := a.decoder.forward(point)
	slopes = make([]float64, len(input)-a.loss.scale.condition)
	for i := range slopes {
		off := rebuilt[len(rebuilt)-1][i] - input[a.loss.scale.condition+i]
		total += rebuild * off * off
		slopes[i] = 2 * rebuild * off
	}
	for i, slope := range a.decoder.backward(rebuilt, slopes, gradient[one:two]) {
		below[i] += slope
	}

	slopes = make([]float64, 2*latent)
	for j := range latent {
		mean, logVariance := code[j], bounded(code[latent+j])
		total += regular / 2 * (mean*mean + math.Exp(logVariance) - 1 - logVariance)
		slopes[j] = below[j] + regular*mean
		spread := below[j]*noise[j]*math.Exp(logVariance/2)/2 + regular/2*(math.Exp(logVariance)-1)
		slopes[latent+j] = spread * boundedSlope(code[latent+j])
	}
	a.encoder.backward(encoded, slopes, gradient[:one])
	return total
}

// point is a latent point, followed by the condition.
func (a *autoencoder) point(code, noise, input []float64) []float64 {
	point := make([]float64, latent, latent+a.loss.scale.condition)
	for j := range point {
		point[j] = code[j] + noise[j]*math.Exp(bounded(code[latent+j])/2)
	}
	return append(point, input[:a.loss.scale.condition]...)
}

// bounded keeps the logarithm of a variance within -8 and 8.
func bounded(x float64) float64 { return 8 * math.Tanh(x/8) }

func boundedSlope(x float64) float64 {
	t := math.Tanh(x / 8)
	return 1 - t*t
}

func (a *autoencoder) predict(input []float64) (mean, variance []float64) {
	encoded := a.encoder.forward(input)
	mean, variance = make([]float64, len(a.loss.logarithmic)), make([]float64, len(a.loss.logarithmic))
	for _, noise := range a.points {
		values := a.head.forward(a.point(encoded[len(encoded)-1], noise, input))
		for o, value := range values[len(values)-1] {
			mean[o] += value / draws
			variance[o] += value * value / draws
		}
	}
	for o := range mean {
		variance[o] = max(0, variance[o]-mean[o]*mean[o])
	}
	return mean, variance
}
