/* @NAME@: a Gaussian process of @P@ inducing points in @D@ dimensions, which goes on learning. Written by streamgp.
 *
 * One file of C99 that needs math.h alone: nothing is allocated, and the state is a struct of @BYTES@ bytes.
 * Compile it as it is, and declare its functions elsewhere with
 *
 *     #define @MACRO@_DECLARATIONS_ONLY
 *     #include "@FILE@"
 *
 * Every function that can be refused returns a code, and changes nothing unless that is @MACRO@_OK.
 * A state is changed by one thread at a time; reading it needs no lock. About one kilobyte of stack is used for
 * each 60 inducing points.
 */
#ifndef @MACRO@_DECLARED
#define @MACRO@_DECLARED

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef @REAL@ @NAME@_real;

enum { @MACRO@_POINTS = @P@, @MACRO@_DIMENSIONS = @D@, @MACRO@_TRIANGLE = @TRIANGLE@, @MACRO@_STATE_BYTES = @STATE_BYTES@ };

enum {
    @MACRO@_OK = 0,
    @MACRO@_NOT_FINITE = 1,   /* an argument is NaN or infinite */
    @MACRO@_OUT_OF_RANGE = 2, /* noise, count, exposure or factor has no meaning */
    @MACRO@_TOO_LARGE = 3,    /* the result cannot be held in numbers */
    @MACRO@_NOT_FOUND = 4,    /* the site of a class or count did not converge */
    @MACRO@_NO_STATE = 5      /* bytes are damaged, or of another model */
};

/* The belief about the whitened inducing values: mean, and covariance U D U' with U of unit diagonal, whose columns
 * follow each other; the diagonal of D stands where the ones of U would. The rest is what the mean lost to rounding. */
typedef struct {
    @NAME@_real mean[@MACRO@_POINTS];
    @NAME@_real rest[@MACRO@_POINTS];
    @NAME@_real factor[@MACRO@_TRIANGLE];
} @NAME@_state;

/* What was known when the file was written. */
void @NAME@_start(@NAME@_state *state);

/* Mean and variance of the function at x, an array of @D@ numbers, without the noise of an observation. */
int @NAME@_predict(const @NAME@_state *state, const @NAME@_real *x, @NAME@_real *mean, @NAME@_real *variance);

/* The same with their gradients in x, arrays of @D@ numbers: what a controller needs. At an inducing point, a Matern
 * kernel of smoothness 1/2 has none, and counts as flat there. */
int @NAME@_linearize(const @NAME@_state *state, const @NAME@_real *x, @NAME@_real *mean, @NAME@_real *variance,
    @NAME@_real *mean_gradient, @NAME@_real *variance_gradient);

/* Learn a value y at x, observed with a noise variance. */
int @NAME@_absorb(@NAME@_state *state, const @NAME@_real *x, @NAME@_real y, @NAME@_real noise_variance);

/* Learn a class, 0 or 1, whose probability is the normal distribution function of the latent value. */
int @NAME@_absorb_class(@NAME@_state *state, const @NAME@_real *x, int y);

/* Learn a count, Poisson with the exposure times the exponential of the latent value as its mean. */
int @NAME@_absorb_count(@NAME@_state *state, const @NAME@_real *x, @NAME@_real y, @NAME@_real exposure);

/* Multiply the information of all that was learned by a factor, above 0 and at most 1. Takes as long as learning
 * @P@ rows. */
int @NAME@_forget(@NAME@_state *state, @NAME@_real factor);

/* The state as @MACRO@_STATE_BYTES bytes, the same on every machine; streamgp.import_state reads them. */
void @NAME@_state_out(const @NAME@_state *state, unsigned char *bytes);
int @NAME@_state_in(@NAME@_state *state, const unsigned char *bytes, size_t num_bytes);

#ifdef __cplusplus
}
#endif

#endif /* declarations */

#ifndef @MACRO@_DECLARATIONS_ONLY

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { P = @MACRO@_POINTS, D = @MACRO@_DIMENSIONS, PARTS = @PARTS@, NODES = @NODES@, MOST_STEPS = 400 };
typedef @NAME@_real real;

/* Kernels and their whitening are computed in double precision, as near inducing points magnify their rounding. Where
 * that is slow, and the points are about a lengthscale apart, define @MACRO@_NARROW. */
#ifdef @MACRO@_NARROW
typedef real wide;
#define WIDE(function) function @SUFFIX@
#else
typedef double wide;
#define WIDE(function) function
#endif

@FUNCTIONS@#define EPSILON @EPSILON@
#define LEAST @LEAST@
/* The kernel is zero beyond: exp(-@FAR@) underflows. */
#define FAR ((real)@FAR@)

static const real MEAN = @MEAN@;
static const wide PRIOR_VARIANCE = @PRIOR_VARIANCE@;
static const uint32_t FINGERPRINT = @FINGERPRINT@u;
/* Of each part of the kernel: variance, twice its Matern smoothness (0 for the squared exponential), and inverse
 * lengthscales times the root of that, zero for dimensions that it does not see. */
static const wide VARIANCES[PARTS] = {@VARIANCES@};
static const int SMOOTHNESS[PARTS] = {@SMOOTHNESS@};
static const wide SCALES[PARTS][D] = {@SCALES@};
/* Inducing points, one row for each dimension. */
static const wide POINTS[D][P] = {@POINTS@};
/* The inverse of the factor of their kernel matrix, by columns from the diagonal down. */
static const wide WHITENING[@MACRO@_TRIANGLE] = {@WHITENING@};
static const real START_MEAN[P] = {@START_MEAN@};
static const real START_FACTOR[@MACRO@_TRIANGLE] = {@START_FACTOR@};
/* Gauss-Hermite nodes and weights of a standard normal variable. */
static const real NODE[NODES] = {@NODE@};
static const real WEIGHT[NODES] = {@WEIGHT@};

/* Sum of products, in eight parts that a compiler may compute side by side. */
static real dot(const real *restrict a, const real *restrict b, int n)
{
    real part[8] = {0};
    int i = 0, k;
    for (; i + 8 <= n; i += 8)
        for (k = 0; k < 8; k++) part[k] += a[i + k] * b[i + k];
    for (; i < n; i++) part[0] += a[i] * b[i];
    return ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
}

static void add_multiple(real *restrict to, real factor, const real *restrict of, int n)
{
    int i;
    for (i = 0; i < n; i++) to[i] += factor * of[i];
}

/* The same for features and what becomes of them. */
static wide wide_dot(const wide *restrict a, const wide *restrict b, int n)
{
    wide part[8] = {0};
    int i = 0, k;
    for (; i + 8 <= n; i += 8)
        for (k = 0; k < 8; k++) part[k] += a[i + k] * b[i + k];
    for (; i < n; i++) part[0] += a[i] * b[i];
    return ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
}

static void add_wide_multiple(wide *restrict to, wide factor, const wide *restrict of, int n)
{
    int i;
    for (i = 0; i < n; i++) to[i] += factor * of[i];
}

/* Squared distances of x from the inducing points, in units of a part of the kernel. */
static void distances(const real *restrict x, int part, wide *restrict square)
{
    int d, i;
    for (i = 0; i < P; i++) square[i] = 0;
    for (d = 0; d < D; d++) {
        const wide scale = SCALES[part][d];
        if (scale == 0) continue;
        for (i = 0; i < P; i++) {
            const wide difference = (x[d] - POINTS[d][i]) * scale;
            square[i] += difference * difference;
        }
    }
}

/* Covariances of the function at x with its values at the inducing points. */
static void cross(const real *restrict x, wide *restrict k)
{
    wide square[P], value[P];
    int part, i;
    for (i = 0; i < P; i++) k[i] = 0;
    for (part = 0; part < PARTS; part++) {
        distances(x, part, square);
        if (SMOOTHNESS[part] == 0) {
            for (i = 0; i < P; i++) value[i] = WIDE(exp)((wide)-0.5 * (square[i] < 2 * FAR ? square[i] : 2 * FAR));
        } else {
            for (i = 0; i < P; i++) {
                const wide root = WIDE(sqrt)(square[i]), s = root < FAR ? root : FAR;
                const wide polynomial = SMOOTHNESS[part] == 1   ? 1
                                        : SMOOTHNESS[part] == 3 ? 1 + s
                                                                : 1 + s + s * s / 3;
                value[i] = polynomial * WIDE(exp)(-s);
            }
        }
        add_wide_multiple(k, VARIANCES[part], value, P);
    }
}

/* What the belief says at x: features, U' times them, and moments. */
typedef struct {
    real features[P], rotated[P];
    real mean, explained, slack;
} seen;

/* With features phi and the covariance U D U': rotated = U' phi, explained = phi' U D U' phi. */
static void rotate(const @NAME@_state *state, seen *at, int first)
{
    const real *column = state->factor + (size_t)first * (first + 1) / 2;
    int j;
    at->explained = 0;
    for (j = first; j < P; j++) {
        const real f = at->features[j] + dot(column + first, at->features + first, j - first);
        at->rotated[j] = f;
        at->explained += column[j] * f * f;
        column += j + 1;
    }
}

static int look(const @NAME@_state *state, const real *x, seen *at)
{
    wide k[P], features[P];
    const wide *column = WHITENING;
    wide slack;
    int d, i;
    for (d = 0; d < D; d++)
        if (!isfinite(x[d])) return @MACRO@_NOT_FINITE;
    cross(x, k);
    for (i = 0; i < P; i++) features[i] = 0;
    for (i = 0; i < P; i++) {
        add_wide_multiple(features + i, k[i], column, P - i);
        column += P - i;
    }
    for (i = 0; i < P; i++) at->features[i] = (real)features[i];
    at->mean = MEAN + dot(state->mean, at->features, P);
    slack = PRIOR_VARIANCE - wide_dot(features, features, P);
    at->slack = slack > 0 ? (real)slack : 0;
    rotate(state, at, 0);
    return @MACRO@_OK;
}

/* Learn that the inducing values times the features are by a residual above their mean, with a noise variance. The
 * factor is updated as Bierman did (1977): it stays one of a covariance whatever is rounded. */
static int update(@NAME@_state *state, const seen *at, real residual, real noise, int first)
{
    real gain[P], step[P];
    real *column = state->factor + (size_t)first * (first + 1) / 2;
    const real total = (noise > LEAST ? noise : LEAST) + at->explained;
    /* Noise of no more than rounding of the total counts as that, so that quotients of partial sums stay finite. */
    const real least = total * EPSILON * EPSILON > LEAST ? total * EPSILON * EPSILON : LEAST;
    real sum = noise > least ? noise : least;
    int i, j;
    if (!isfinite(total)) return @MACRO@_TOO_LARGE;
    for (i = 0; i < P; i++) gain[i] = 0;
    {
        const real *of = column;
        for (j = first; j < P; j++) {
            const real v = of[j] * at->rotated[j];
            add_multiple(gain, v, of, j);
            gain[j] += v;
            of += j + 1;
        }
    }
    for (i = 0; i < P; i++) {
        step[i] = state->rest[i] + gain[i] * (residual / total);
        if (!isfinite(state->mean[i] + step[i])) return @MACRO@_TOO_LARGE;
    }
    /* Kahan's sum: many small steps would add up their rounding. */
    for (i = 0; i < P; i++) {
        const real old = state->mean[i], new_mean = old + step[i];
        state->rest[i] = step[i] - (new_mean - old);
        state->mean[i] = new_mean;
        gain[i] = 0;
    }
    for (j = first; j < P; j++) {
        const real f = at->rotated[j], v = column[j] * f, before = sum;
        const real share = -f / before;
        sum += f * v;
        for (i = 0; i < j; i++) {
            const real u = column[i];
            column[i] = u + share * gain[i];
            gain[i] += v * u;
        }
        gain[j] = v;
        column[j] *= before / sum;
        column += j + 1;
    }
    return @MACRO@_OK;
}

void @NAME@_start(@NAME@_state *state)
{
    memcpy(state->mean, START_MEAN, sizeof START_MEAN);
    memset(state->rest, 0, sizeof state->rest);
    memcpy(state->factor, START_FACTOR, sizeof START_FACTOR);
}

int @NAME@_predict(const @NAME@_state *state, const real *x, real *mean, real *variance)
{
    seen at;
    const int code = look(state, x, &at);
    if (code != @MACRO@_OK) return code;
    if (!isfinite(at.mean)) return @MACRO@_TOO_LARGE;
    *mean = at.mean;
    *variance = at.slack + at.explained;
    return @MACRO@_OK;
}

int @NAME@_linearize(const @NAME@_state *state, const real *x, real *mean, real *variance, real *mean_gradient,
    real *variance_gradient)
{
    /* Both are weights times covariances: those of the mean, and those of the variance, twice L^-T (S - I) phi. */
    seen at;
    real excess[P];
    wide mean_weight[P], variance_weight[P], of_mean[P], of_variance[P], square[P], first[P], second[P], difference[P];
    const real *column = state->factor;
    const wide *whitening = WHITENING;
    int code = look(state, x, &at), part, d, i, j;
    if (code != @MACRO@_OK) return code;
    if (!isfinite(at.mean)) return @MACRO@_TOO_LARGE;
    for (i = 0; i < P; i++) excess[i] = -at.features[i];
    for (j = 0; j < P; j++) {
        const real v = column[j] * at.rotated[j];
        add_multiple(excess, v, column, j);
        excess[j] += v;
        column += j + 1;
    }
    for (i = 0; i < P; i++) mean_weight[i] = state->mean[i], variance_weight[i] = excess[i];
    for (j = 0; j < P; j++) {
        of_mean[j] = wide_dot(whitening, mean_weight + j, P - j);
        of_variance[j] = 2 * wide_dot(whitening, variance_weight + j, P - j);
        whitening += P - j;
    }
    for (d = 0; d < D; d++) mean_gradient[d] = variance_gradient[d] = 0;
    for (part = 0; part < PARTS; part++) {
        distances(x, part, square);
        for (i = 0; i < P; i++) {
            /* The derivative of the kernel is minus this times the difference of inputs and their scale squared. */
            const wide root = WIDE(sqrt)(square[i]), s = root < FAR ? root : FAR;
            const wide slope = VARIANCES[part]
                * (SMOOTHNESS[part] == 0       ? WIDE(exp)((wide)-0.5 * (square[i] < 2 * FAR ? square[i] : 2 * FAR))
                        : SMOOTHNESS[part] == 1 ? (s > 0 ? WIDE(exp)(-s) / s : 0)
                        : SMOOTHNESS[part] == 3 ? WIDE(exp)(-s)
                                                : (1 + s) * WIDE(exp)(-s) / 3);
            first[i] = slope * of_mean[i];
            second[i] = slope * of_variance[i];
        }
        for (d = 0; d < D; d++) {
            const wide scale = SCALES[part][d];
            if (scale == 0) continue;
            for (i = 0; i < P; i++) {
                const wide apart = x[d] - POINTS[d][i];
                difference[i] = WIDE(fabs)(apart * scale) < FAR ? apart * scale : 0; /* where the slope is zero */
            }
            mean_gradient[d] -= (real)(scale * wide_dot(first, difference, P));
            variance_gradient[d] -= (real)(scale * wide_dot(second, difference, P));
        }
    }
    *mean = at.mean;
    *variance = at.slack + at.explained;
    return @MACRO@_OK;
}

int @NAME@_absorb(@NAME@_state *state, const real *x, real y, real noise_variance)
{
    seen at;
    int code;
    if (!isfinite(y) || !isfinite(noise_variance)) return @MACRO@_NOT_FINITE;
    if (!(noise_variance > 0)) return @MACRO@_OUT_OF_RANGE;
    code = look(state, x, &at);
    return code != @MACRO@_OK ? code : update(state, &at, y - at.mean, noise_variance, 0);
}

/* phi(z) / Phi(z), and that plus z without what the two lose far below zero. */
static real mills(real z, real *excess)
{
    real ratio;
    if (z > -10) {
        ratio = (real)0.7978845608028654 * EXP((real)-0.5 * z * z) / ERFC(-z * (real)0.7071067811865476);
        *excess = ratio + z;
    } else {
        const real s = 1 / (z * z);
        *excess = -(1 - s * (2 - s * (10 - s * (74 - 706 * s)))) / z;
        ratio = *excess - z;
    }
    return ratio;
}

/* The variational site exp(pull e - precision e^2 / 2) of a class, in the shift e of the latent value: its precision is
 * the curvature, and its pull less precision times shift the gradient, that are expected under the belief with it. */
static int find_class_site(const seen *at, int y, real *pull, real *precision)
{
    const real sign = y ? 1 : -1, variance = at->explained;
    real r = 0, tau = LEAST, new_r = 0, new_tau = 0, trial_r = 0, trial_tau = LEAST, length = 1, worst = -1;
    int step, i;
    for (step = 0; step < MOST_STEPS; step++) {
        const real factor = 1 + trial_tau * variance, left = variance / factor, gradient = trial_r / factor;
        const real shift = variance * gradient, deviation = SQRT(left + at->slack);
        real first = 0, second = 0, residual, change;
        for (i = 0; i < NODES; i++) {
            real excess;
            const real ratio = mills(sign * (at->mean + shift + deviation * NODE[i]), &excess);
            first += WEIGHT[i] * ratio;
            second += WEIGHT[i] * ratio * excess;
        }
        first *= sign;
        residual = FABS(first - gradient) * SQRT(left);
        change = FABS(second - trial_tau) * left;
        residual = residual > change ? residual : change;
        if (worst < 0 || residual <= worst) {
            r = trial_r, tau = trial_tau, worst = residual;
            new_tau = second > LEAST ? second : LEAST;
            new_r = first + new_tau * shift;
            if (residual <= 16 * EPSILON) break;
            length = 2 * length < 1 ? 2 * length : 1;
        } else {
            length *= (real)0.5;
            if (length < EPSILON) break;
        }
        trial_r = r + length * (new_r - r);
        trial_tau = tau + length * (new_tau - tau);
    }
    *pull = r, *precision = tau;
    return worst >= 0 && worst <= @LOOSE@ ? @MACRO@_OK : @MACRO@_NOT_FOUND;
}

int @NAME@_absorb_class(@NAME@_state *state, const real *x, int y)
{
    seen at;
    real pull = 0, precision = 0;
    int code;
    if (y != 0 && y != 1) return @MACRO@_OUT_OF_RANGE;
    code = look(state, x, &at);
    if (code == @MACRO@_OK) code = find_class_site(&at, y, &pull, &precision);
    return code != @MACRO@_OK ? code : update(state, &at, pull / precision, 1 / precision, 0);
}

/* The same of a count, whose expected curvature is the expected rate: log rate = log exposure + mean + shift + half the
 * variance left, with shift = variance (y - rate). One number, found between bounds. */
static int find_rate(const seen *at, real y, real exposure, real *rate)
{
    const real v = at->explained, center = LOG(exposure) + at->mean;
    real t = center, low = center, high = center, width = 1, value, slope;
    int step, side;
    for (step = 0, side = 0; step < MOST_STEPS; step++) {
        const real e = EXP(t), left = v / (1 + v * e);
        value = t - center - v * (y - e) - (real)0.5 * (left + at->slack);
        slope = 1 + v * e + (real)0.5 * left * left * e;
        if (!(value < 0) && !(value > 0) && value != 0) value = 1, slope = 0; /* e overflowed */
        if (value > 0) high = t; else low = t;
        if (value == 0) break;
        if (side != 2) { /* until there are both bounds: 1 looks up, -1 looks down */
            if (side == 0) side = value > 0 ? -1 : 1;
            else if ((value > 0) == (side > 0)) side = 2;
            if (side != 2) {
                t += side * width;
                width *= 2;
                continue;
            }
        }
        {
            const real newton = slope > 0 ? t - value / slope : t, middle = low + (high - low) * (real)0.5;
            const real next = newton > low && newton < high ? newton : middle;
            if (next == t || FABS(next - t) <= EPSILON * (1 + FABS(t))) {
                t = next;
                break;
            }
            t = next;
        }
    }
    *rate = EXP(t);
    return step < MOST_STEPS && isfinite(*rate) ? @MACRO@_OK : @MACRO@_NOT_FOUND;
}

int @NAME@_absorb_count(@NAME@_state *state, const real *x, real y, real exposure)
{
    seen at;
    real rate = 0;
    int code;
    if (!isfinite(y) || !isfinite(exposure)) return @MACRO@_NOT_FINITE;
    if (!(y >= 0) || FLOOR(y) != y || !(exposure > 0)) return @MACRO@_OUT_OF_RANGE;
    code = look(state, x, &at);
    if (code == @MACRO@_OK) code = find_rate(&at, y, exposure, &rate);
    if (code != @MACRO@_OK) return code;
    rate = rate > LEAST ? rate : LEAST;
    return update(state, &at, at.explained * (y - rate) + (y - rate) / rate, 1 / rate, 0);
}

int @NAME@_forget(@NAME@_state *state, real factor)
{
    /* The covariance over the factor, and then observations of zero of each inducing value, as the prior has them. */
    @NAME@_state old;
    real *column = state->factor;
    int j;
    if (!isfinite(factor)) return @MACRO@_NOT_FINITE;
    if (!(factor > LEAST) || factor > 1) return @MACRO@_OUT_OF_RANGE;
    if (factor == 1) return @MACRO@_OK;
    memcpy(&old, state, sizeof old);
    for (j = 0; j < P; j++) {
        column[j] /= factor;
        column += j + 1;
    }
    for (j = 0; j < P; j++) {
        seen at;
        int i, code;
        for (i = 0; i < P; i++) at.features[i] = at.rotated[i] = 0;
        at.features[j] = 1;
        at.slack = 0;
        rotate(state, &at, j);
        code = update(state, &at, -state->mean[j], 1 / (1 - factor), j);
        if (code != @MACRO@_OK) {
            memcpy(state, &old, sizeof old);
            return code;
        }
    }
    return @MACRO@_OK;
}

/* Bytes: "SGPB", version, bytes of a number, points, fingerprint, mean, factor, and a checksum; least significant byte
 * first. */
static void put(unsigned char **to, uint64_t value, int n)
{
    for (; n > 0; n--, value >>= 8) *(*to)++ = (unsigned char)(value & 255u);
}

static uint64_t get(const unsigned char **from, int n)
{
    uint64_t value = 0;
    int i;
    for (i = 0; i < n; i++) value |= (uint64_t)*(*from)++ << (8 * i);
    return value;
}

static uint32_t checksum(const unsigned char *bytes, size_t n)
{
    uint32_t hash = 2166136261u;
    size_t i;
    for (i = 0; i < n; i++) hash = (hash ^ bytes[i]) * 16777619u;
    return hash;
}

static void put_real(unsigned char **to, real value)
{
    @WORD@ word;
    memcpy(&word, &value, sizeof word);
    put(to, word, (int)sizeof word);
}

static real get_real(const unsigned char **from)
{
    real value;
    const @WORD@ word = (@WORD@)get(from, (int)sizeof value);
    memcpy(&value, &word, sizeof value);
    return value;
}

void @NAME@_state_out(const @NAME@_state *state, unsigned char *bytes)
{
    unsigned char *to = bytes;
    int i;
    memcpy(to, "SGPB", 4);
    to += 4;
    put(&to, 1, 2);
    put(&to, sizeof(real), 2);
    put(&to, P, 4);
    put(&to, FINGERPRINT, 4);
    for (i = 0; i < P; i++) put_real(&to, state->mean[i]);
    for (i = 0; i < @MACRO@_TRIANGLE; i++) put_real(&to, state->factor[i]);
    put(&to, checksum(bytes, @MACRO@_STATE_BYTES - 4), 4);
}

int @NAME@_state_in(@NAME@_state *state, const unsigned char *bytes, size_t num_bytes)
{
    const unsigned char *from = bytes + 4, *end = bytes + @MACRO@_STATE_BYTES - 4;
    const unsigned char *numbers;
    int i, j;
    if (num_bytes != @MACRO@_STATE_BYTES || memcmp(bytes, "SGPB", 4) != 0) return @MACRO@_NO_STATE;
    if (get(&from, 2) != 1 || get(&from, 2) != sizeof(real) || get(&from, 4) != P || get(&from, 4) != FINGERPRINT)
        return @MACRO@_NO_STATE;
    if (get(&end, 4) != checksum(bytes, @MACRO@_STATE_BYTES - 4)) return @MACRO@_NO_STATE;
    numbers = from;
    for (i = 0; i < P; i++)
        if (!isfinite(get_real(&from))) return @MACRO@_NO_STATE;
    for (j = 0; j < P; j++)
        for (i = 0; i <= j; i++) {
            const real value = get_real(&from);
            if (!isfinite(value) || (i == j && !(value >= 0))) return @MACRO@_NO_STATE;
        }
    for (i = 0; i < P; i++) state->mean[i] = get_real(&numbers), state->rest[i] = 0;
    for (i = 0; i < @MACRO@_TRIANGLE; i++) state->factor[i] = get_real(&numbers);
    return @MACRO@_OK;
}

#endif /* definitions */
