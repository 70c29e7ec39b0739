// exp and silu of 8 floats: include inside an anonymous namespace, with AVX2 and FMA switched on.
// The range is reduced by multiples of ln 2 and the rest is Cephes' polynomial (Moshier, expf): about one unit in the
// last place.

// 0 below -87, where the result would be denormal, and so for -inf; the largest it gives is exp(88).
inline __m256 exponential(__m256 x) {
    const __m256 enough = _mm256_cmp_ps(x, _mm256_set1_ps(-87.0f), _CMP_GE_OQ);
    x = _mm256_min_ps(_mm256_max_ps(x, _mm256_set1_ps(-87.0f)), _mm256_set1_ps(88.0f));
    const __m256 twos = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504088896341f)),
                                        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 rest = _mm256_fnmadd_ps(twos, _mm256_set1_ps(0.693359375f), x);
    rest = _mm256_fnmadd_ps(twos, _mm256_set1_ps(-2.12194440e-4f), rest);
    __m256 series = _mm256_set1_ps(1.9875691500e-4f);
    series = _mm256_fmadd_ps(series, rest, _mm256_set1_ps(1.3981999507e-3f));
    series = _mm256_fmadd_ps(series, rest, _mm256_set1_ps(8.3334519073e-3f));
    series = _mm256_fmadd_ps(series, rest, _mm256_set1_ps(4.1665795894e-2f));
    series = _mm256_fmadd_ps(series, rest, _mm256_set1_ps(1.6666665459e-1f));
    series = _mm256_fmadd_ps(series, rest, _mm256_set1_ps(5.0000001201e-1f));
    series = _mm256_fmadd_ps(series, _mm256_mul_ps(rest, rest), _mm256_add_ps(rest, _mm256_set1_ps(1.0f)));
    const __m256i power = _mm256_slli_epi32(_mm256_cvtps_epi32(twos), 23);
    const __m256 scaled = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(series), power));
    return _mm256_and_ps(scaled, enough);
}

inline __m256 silu(__m256 x) {
    const __m256 one = _mm256_set1_ps(1.0f);
    return _mm256_div_ps(x, _mm256_add_ps(one, exponential(_mm256_sub_ps(_mm256_setzero_ps(), x))));
}
