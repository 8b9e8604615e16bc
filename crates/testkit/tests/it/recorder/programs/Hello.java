public class Hello {
    public static void main(String[] args) throws Exception {
        System.out.println("hello");
        Thread[] threads = new Thread[args.length * 8];
        int[] sum = new int[1];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                synchronized (sum) {
                    sum[0]++;
                }
            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println(sum[0]);
    }
}
