// Kernels that read an image as a texture, and write one as a surface.

// The image turned and enlarged around its centre; it repeats outside. All coordinates are exact in float.
extern "C" __global__ void turn(float *out, int width, int height, cudaTextureObject_t image)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float u = (x + 0.5f) / width - 0.5f, v = (y + 0.5f) / height - 0.5f;
    out[y * width + x] = tex2D<float>(image, 0.75f * u - 0.5f * v + 0.5f, 0.75f * v + 0.5f * u + 0.5f);
}

__device__ float texel(const unsigned char *image, int width, int height, int x, int y)
{
    return image[(y + height) % height * width + (x + width) % width] / 255.0f;
}

// The same without a texture.
extern "C" __global__ void turn_plain(float *out, int width, int height, const unsigned char *image)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float u = (x + 0.5f) / width - 0.5f, v = (y + 0.5f) / height - 0.5f;
    float s = (0.75f * u - 0.5f * v + 0.5f) * width - 0.5f, t = (0.75f * v + 0.5f * u + 0.5f) * height - 0.5f;
    int i = floorf(s), j = floorf(t);
    float a = s - i, b = t - j;
    out[y * width + x] = (1 - b) * ((1 - a) * texel(image, width, height, i, j) + a * texel(image, width, height, i + 1, j))
                       + b * ((1 - a) * texel(image, width, height, i, j + 1) + a * texel(image, width, height, i + 1, j + 1));
}

// Each value less 1, where the table has the value before; the first one has none.
extern "C" __global__ void look_up(int *out, int n, cudaTextureObject_t table)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1Dfetch<int>(table, i - 1);
}

// The mean of three by three texels, the edge repeated, as a surface.
extern "C" __global__ void blur(cudaSurfaceObject_t out, int width, int height, cudaTextureObject_t image)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0;
    for (int j = -1; j <= 1; j++)
        for (int i = -1; i <= 1; i++) sum += tex2D<float>(image, x + i + 0.5f, y + j + 0.5f);
    surf2Dwrite(sum / 9, out, x * (int)sizeof(float), y);
}

// The layers of an image added up; then the volume between its texels.
extern "C" __global__ void layers(float *out, int width, int count, cudaTextureObject_t layered, cudaTextureObject_t volume)
{
    int x = threadIdx.x, y = blockIdx.x;
    float sum = 0;
    for (int layer = 0; layer < count; layer++) sum += tex2DLayered<float>(layered, x + 0.5f, y + 0.5f, layer);
    out[y * width + x] = sum + tex3D<float>(volume, x + 0.5f, y + 0.5f, count / 2.0f);
}
