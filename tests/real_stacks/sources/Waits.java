// Waits of a JVM's threads: in interpreted and in compiled code, on monitors, locks, queues, sockets and time.
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.LockSupport;

public class Waits {
  interface Way {
    void run() throws Exception;
  }

  static final Object monitor = new Object();

  static void start(Way way) {
    Thread thread = new Thread(() -> {
      try {
        way.run();
      } catch (Exception e) {
        throw new RuntimeException(e);
      }
    });
    thread.setDaemon(true);
    thread.start();
  }

  static int descend(int depth, Way last) throws Exception {
    if (depth > 0) return descend(depth - 1, last) + 1;
    last.run();
    return 0;
  }

  static void sleepHere() throws InterruptedException {
    Thread.sleep(600_000);
  }

  static void block() throws Exception {
    synchronized (monitor) {
      sleepHere();
    }
  }

  static void compiled(int depth, Way last) throws Exception {
    for (int i = 0; i < 50_000; ++i) descend(depth, () -> {});
    descend(depth, last);
  }

  public static void main(String[] arguments) throws Exception {
    ServerSocket listener = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
    start(Waits::block);
    start(Waits::block);
    start(() -> descend(20, Waits::block));
    start(() -> { synchronized (arguments) { arguments.wait(); } });
    start(() -> new LinkedBlockingQueue<String>().take());
    start(() -> new CountDownLatch(1).await());
    start(() -> new Semaphore(0).acquire());
    start(() -> LockSupport.park());
    start(() -> listener.accept());
    start(() -> System.in.read());
    start(() -> Executors.newFixedThreadPool(2).submit(() -> { sleepHere(); return 0; }).get());
    start(() -> Arrays.asList(2, 1).forEach(x -> { try { sleepHere(); } catch (InterruptedException e) { } }));
    start(() -> compiled(10, Waits::sleepHere));
    start(() -> compiled(30, () -> listener.accept()));
    start(() -> compiled(15, () -> new LinkedBlockingQueue<String>().take()));
    compiled(25, Waits::sleepHere);
  }
}
